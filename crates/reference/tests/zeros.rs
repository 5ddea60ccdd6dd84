//! Frames that begin as the proof says: the bytes that it names are zeros, all others unset.

use millrace_assemble::assemble;
use millrace_check::{Options, check};
use millrace_object::program::{FunctionId, Role};
use millrace_reference::{End, Machine};

/// The end of an execution whose frames begin as proved.
fn end(text: &str) -> End {
    let program = assemble(text);
    let checked = check(&program, &Options::default()).unwrap();
    let mut machine = Machine::new(&program, &[], 1);
    machine.begin_as_proved(&checked);
    machine.run(FunctionId(0), Role::Xdp, 100).unwrap()
}

#[test]
fn loads_are_of_zeros() {
    let half = "*(u32 *)(r10 - 8) = 1\nr0 = *(u64 *)(r10 - 8)\nexit";
    assert_eq!(end(half), End::Verdict(1));
    let varying =
        "r2 = *(u32 *)(r1 + 12)\nr2 &= 7\nr3 = r10\nr3 += -8\nr3 += r2\nr0 = *(u8 *)(r3 + 0)\nexit";
    assert_eq!(end(varying), End::Verdict(0));
}

#[test]
fn every_call_of_a_function_begins_with_zeros() {
    // The second call would see what the first one left.
    let text = "call fn other\nr6 = r0\ncall fn other\nr0 += r6\nexit\nfn other\nr0 = *(u32 *)(r10 - 4)\n*(u32 *)(r10 - 4) = 9\nexit";
    assert_eq!(end(text), End::Verdict(0));
}
