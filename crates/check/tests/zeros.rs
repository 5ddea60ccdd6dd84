//! Stack bytes that are read before they are written: zeros, stored where the frame begins, and only those that are
//! needed.

use millrace_assemble::assemble;
use millrace_check::facts::{Flow, Op};
use millrace_check::{Options, check};
use millrace_object::insn::{Insn, Operand, Reg};

fn flow(text: &str) -> Flow {
    let checked = check(&assemble(text), &Options::default());
    checked.unwrap_or_else(|r| panic!("{r:#?}")).flows.remove(0)
}

/// What each frame begins with as zeros, by frame.
fn zeroed(text: &str) -> Vec<Vec<(i32, i32)>> {
    flow(text).frames.into_iter().map(|f| f.zeroed).collect()
}

/// The stores of zeros that a flow begins with: place and bytes.
fn first_stores(flow: &Flow) -> Vec<(i16, u64)> {
    let store = |op: Op| match op {
        Op::Plain(Insn::Store {
            size,
            base: Reg(10),
            offset,
            src: Operand::Imm(0),
        }) => Some((offset, u64::from(size.bytes()))),
        _ => None,
    };
    flow.steps.iter().map_while(|s| store(s.op)).collect()
}

const TABLE: &str = "object table hash key=8 value=16\n";
const LOOKUP: &str = "r2 = r10\nr2 += -8\nr1 = object table\ncall map_lookup_elem\nr0 = 1\n";

#[test]
fn the_padding_of_a_key_and_nothing_else() {
    // struct { __u8; __u32; }
    let text = format!(
        "{TABLE}*(u8 *)(r10 - 8) = 6\n*(u32 *)(r10 - 4) = 7\n*(u64 *)(r10 - 16) = 1\n{LOOKUP}exit"
    );
    assert_eq!(zeroed(&text), [[(-7, -4)]]);
    assert_eq!(first_stores(&flow(&text)), [(-7, 1), (-6, 2)]);
    let whole = text.replace("u8 *)(r10 - 8) = 6", "u32 *)(r10 - 8) = 6");
    assert_eq!(zeroed(&whole), [[]]);
    assert_eq!(first_stores(&flow(&whole)), []);
}

#[test]
fn what_some_ways_write_is_zero_on_the_others() {
    let text = format!(
        "{TABLE}r3 = *(u32 *)(r1 + 12)\nif r3 == 0 goto on\n*(u64 *)(r10 - 8) = 6\non:\n{LOOKUP}exit"
    );
    assert_eq!(zeroed(&text), [[(-8, 0)]]);
    // A way that is known not to be taken needs none.
    let known = text.replace("if r3 == 0 goto on", "r3 = 1\nif r3 == 0 goto on");
    assert_eq!(zeroed(&known), [[]]);
}

#[test]
fn loads_are_of_zeros() {
    let half = "*(u32 *)(r10 - 8) = 1\nr0 = *(u64 *)(r10 - 8)\nexit";
    assert_eq!(zeroed(half), [[(-4, 0)]]);
    let varying =
        "r2 = *(u32 *)(r1 + 12)\nr2 &= 7\nr3 = r10\nr3 += -8\nr3 += r2\nr0 = *(u8 *)(r3 + 0)\nexit";
    assert_eq!(zeroed(varying), [[(-8, 0)]]);
    // What is loaded and not used is not read.
    assert_eq!(zeroed("r2 = *(u64 *)(r10 - 8)\nr0 = 1\nexit"), [[]]);
}

#[test]
fn a_loop_that_the_function_begins_with_stores_them_once() {
    let text = "again:\nr3 = *(u8 *)(r10 - 8)\nr3 += 1\n*(u8 *)(r10 - 8) = r3\nif r3 < 5 goto again\nr0 = r3\nexit";
    let flow = flow(text);
    assert_eq!(flow.frames[0].zeroed, [(-8, -7)]);
    let back = flow.steps.iter().find_map(|s| match s.op {
        Op::Branch { target, .. } => Some(target.0),
        _ => None,
    });
    assert_eq!(back, Some(1));
}

#[test]
fn every_call_of_a_function_begins_with_zeros() {
    // The second call would see what the first one left.
    let text = "call fn other\nr6 = r0\ncall fn other\nr0 += r6\nexit\nfn other\nr0 = *(u32 *)(r10 - 4)\n*(u32 *)(r10 - 4) = 9\nexit";
    let all = zeroed(text);
    assert_eq!(all[1..], [[(-4, 0)], [(-4, 0)]]);
}
