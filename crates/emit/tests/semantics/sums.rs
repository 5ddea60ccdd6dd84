//! Checksums that are updated several times: folded once, and the same as folded each time.

use millrace_check::Options;
use millrace_object::insn::{AluOp, Insn, Size, Width};

use crate::semantics::{Case, run_all};
use crate::support::asm::*;
use crate::support::{function, program};

/// The sum is the packet's first two bytes.
fn begin() -> Insn {
    store(Size::B2, R6, 0, R1)
}

/// `r3 = (r3 & 0xffff) + (r3 >> 16)`; the last one leaves the upper bits.
fn half(last: bool) -> Vec<Insn> {
    let mut insns = vec![mov(R4, R3), alui(AluOp::Rsh, Width::W64, R4, 16)];
    if !last {
        insns.push(alui(AluOp::And, Width::W64, R3, 0xffff));
    }
    insns.push(add(R3, R4));
    insns
}

/// RFC 1624, equation 3: one word of `r2` becomes another.
fn update(old: i64, new: i64, rounds: usize) -> Vec<Insn> {
    let word = |to, shift| {
        [
            mov(to, R2),
            alui(AluOp::Rsh, Width::W64, to, shift),
            alui(AluOp::And, Width::W64, to, 0xffff),
        ]
    };
    let mut insns = vec![
        load(Size::B2, R3, R6, 0),
        alui(AluOp::Xor, Width::W64, R3, 0xffff),
    ];
    insns.extend(word(R4, old));
    insns.extend([alui(AluOp::Xor, Width::W64, R4, 0xffff), add(R3, R4)]);
    insns.extend(word(R4, new));
    insns.push(add(R3, R4));
    for round in 0..rounds {
        insns.extend(half(round + 1 == rounds));
    }
    insns.extend([
        alui(AluOp::Xor, Width::W64, R3, -1),
        store(Size::B2, R6, 0, R3),
    ]);
    insns
}

fn updated(sum: u64, (old, new): (u64, u64), rounds: usize) -> u64 {
    let mut s = (sum ^ 0xffff) + (old & 0xffff ^ 0xffff) + (new & 0xffff);
    for _ in 0..rounds {
        s = (s & 0xffff) + (s >> 16);
    }
    !s & 0xffff
}

/// Places of words in `r2`.
const WORDS: [(i64, i64); 5] = [(0, 16), (16, 32), (32, 48), (48, 0), (0, 32)];

/// As many updates, each with as many steps of a fold.
fn body(updates: usize, rounds: usize) -> Vec<Insn> {
    let all = WORDS.iter().cycle().take(updates);
    let updates = all.flat_map(|(old, new)| update(*old, *new, rounds));
    let mut insns = vec![begin()];
    insns.extend(updates);
    insns.push(load(Size::B2, R0, R6, 0));
    insns
}

fn merged(body: &[Insn]) -> usize {
    let program = program(vec![function("f", around(body))], 1);
    let checked = millrace_check::check(&program, &Options::default()).unwrap();
    let text = millrace_emit::alone::emit(&program, &checked, "sums.c").unwrap();
    text.matches("MR_MERGED(").count()
}

#[test]
fn updates_are_what_each_would_have_been() {
    let mut cases = Vec::new();
    for (updates, rounds) in [(1, 2), (2, 2), (3, 2), (10, 2), (3, 3), (3, 1), (2, 0)] {
        let name = format!("{updates} updates with {rounds} steps of a fold");
        cases.push(Case::new(name, body(updates, rounds), move |a, b| {
            let all = WORDS.iter().cycle().take(updates);
            all.fold(a & 0xffff, |sum, (old, new)| {
                updated(sum, (b >> old, b >> new), rounds)
            })
        }));
    }
    run_all(&cases);
}

#[test]
fn what_is_folded_once() {
    // Of each, what is stored to the packet and what is known of it.
    for (updates, rounds, expected) in [(1, 2, 0), (2, 2, 2), (10, 2, 18), (3, 3, 4)] {
        let found = merged(&body(updates, rounds));
        assert_eq!(found, expected, "{updates} updates, {rounds} steps");
    }
    // One step of a fold may leave 17 bits, of which the last one is lost.
    assert_eq!(merged(&body(3, 1)), 0);
    // Where half of the sum is another one's, nothing is known of it.
    let mut overwritten = vec![begin()];
    overwritten.extend(update(0, 16, 2));
    overwritten.push(store(Size::B1, R6, 1, R2));
    overwritten.extend(update(16, 32, 2));
    overwritten.push(load(Size::B2, R0, R6, 0));
    assert_eq!(merged(&overwritten), 0);
}
