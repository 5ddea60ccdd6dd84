//! Bytes of the packet that are read and written several times: what is known of them is what is there.

use millrace_check::Options;
use millrace_object::insn::{AluOp, Condition, Insn, Size, Width};

use millrace_turns::of_today;

use crate::semantics::{Case, run_all};
use crate::support::asm::*;
use crate::support::{function, program};

/// Sizes with the places where they are tried, in the first eight bytes.
const PLACES: &[(Size, &[i16])] = &[
    (Size::B1, &[0, 1, 3, 7]),
    (Size::B2, &[0, 1, 2, 6]),
    (Size::B4, &[0, 1, 2, 4]),
    (Size::B8, &[0]),
];

fn places() -> impl Iterator<Item = (Size, i16)> {
    let all = PLACES.iter();
    all.flat_map(|(size, at)| at.iter().map(|at| (*size, *at)))
}

/// Eight bytes of memory.
fn written(memory: u64, (size, at): (Size, i16), value: u64) -> u64 {
    let mask = (u64::MAX >> (64 - 8 * size.bytes())) << (8 * at);
    memory & !mask | value << (8 * at) & mask
}

fn read(memory: u64, (size, at): (Size, i16)) -> u64 {
    memory >> (8 * at) & (u64::MAX >> (64 - 8 * size.bytes()))
}

fn signed((size, _): (Size, i16), value: u64) -> u64 {
    let shift = 64 - 8 * size.bytes();
    ((value << shift) as i64 >> shift) as u64
}

#[test]
fn a_store_between_two_loads() {
    let mut cases = Vec::new();
    for (load_at, store_at) in places().flat_map(|l| places().map(move |s| (l, s))) {
        let loads = |insn: fn(Size, _, _, i16) -> Insn, to| insn(load_at.0, to, R6, load_at.1);
        let begin = [store(Size::B8, R6, 0, R1), loads(load, R3)];
        let between = store(store_at.0, R6, store_at.1, R2);
        let sum = add(R0, R3);
        let both = move |a, b| {
            let before = read(a, load_at);
            (before, read(written(a, store_at, b), load_at))
        };
        let name = |what: &str| format!("{what} {load_at:?} {store_at:?}");
        let body = [&begin[..], &[between, loads(load, R0), sum]].concat();
        cases.push(Case::new(name("store"), body, move |a, b| {
            let (before, after) = both(a, b);
            before.wrapping_add(after)
        }));
        if load_at.0 != Size::B8 {
            let body = [&begin[..], &[between, loads(load_signed, R0), sum]].concat();
            cases.push(Case::new(name("signed"), body, move |a, b| {
                let (before, after) = both(a, b);
                before.wrapping_add(signed(load_at, after))
            }));
        }
        // On one of two paths.
        let path = [branchi(Condition::Test, Width::W64, R1, 1, 4), between];
        let body = [&begin[..], &path, &[loads(load, R0), sum]].concat();
        cases.push(Case::new(name("path"), body, move |a, b| {
            let (before, after) = both(a, b);
            before.wrapping_add(if a & 1 != 0 { before } else { after })
        }));
    }
    run_all(&cases);
}

#[test]
fn a_store_through_another_pointer() {
    let mut cases = Vec::new();
    for load_at in places() {
        // At the packet's first byte or its second, which only a run of it knows.
        let body = vec![
            store(Size::B8, R6, 0, R1),
            load(load_at.0, R3, R6, load_at.1),
            mov(R4, R1),
            alui(AluOp::And, Width::W64, R4, 1),
            add(R4, R6),
            store(Size::B1, R4, 0, R2),
            load(load_at.0, R0, R6, load_at.1),
            add(R0, R3),
        ];
        cases.push(Case::new(format!("{load_at:?}"), body, move |a, b| {
            let place = (Size::B1, (a & 1) as i16);
            read(a, load_at).wrapping_add(read(written(a, place, b), load_at))
        }));
    }
    // Each round finds what the last one left.
    let body = vec![
        store(Size::B8, R6, 0, R1),
        movi(R3, 0),
        load(Size::B4, R0, R6, 2),
        addi(R0, 1),
        store(Size::B2, R6, 3, R0),
        addi(R3, 1),
        branchi(Condition::Lt, Width::W64, R3, 5, 2),
        load(Size::B8, R0, R6, 0),
    ];
    cases.push(Case::new("loop", body, |a, _| {
        (0..5).fold(a, |memory, _| {
            let next = read(memory, (Size::B4, 2)) + 1;
            written(memory, (Size::B2, 3), next)
        })
    }));
    run_all(&cases);
}

/// At a distance of which it is known how much it is at most and, behind a branch, at least.
#[test]
fn a_store_at_some_distance() {
    let mut cases = Vec::new();
    for (load_at, (begin, least)) in places()
        .flat_map(|l| (0..4).map(move |b| (l, b)))
        .flat_map(|(l, begin)| (0..4).map(move |least| (l, (begin, least))))
    {
        let body = vec![
            store(Size::B8, R6, 0, R1),
            load(load_at.0, R3, R6, load_at.1),
            mov(R5, R2),
            alui(AluOp::And, Width::W64, R5, 3),
            // Beyond the store where it is less.
            branchi(Condition::Lt, Width::W64, R5, i64::from(least), 8),
            mov(R4, R6),
            add(R4, R5),
            store(Size::B2, R4, begin, R2),
            load(load_at.0, R0, R6, load_at.1),
            add(R0, R3),
        ];
        let name = format!("{load_at:?}, from {begin}, at least {least}");
        cases.push(Case::new(name, body, move |a, b| {
            let place = (Size::B2, begin + (b & 3) as i16);
            let after = match (b & 3) < u64::from(least as u16) {
                true => a,
                false => written(a, place, b & 0xffff),
            };
            read(a, load_at).wrapping_add(read(after, load_at))
        }));
    }
    run_all(&of_today("stores at some distance", cases, 4));
    // Two bytes in front of all that may be written are not read again, and one byte more is.
    for (at, known) in [(1, 1), (2, 0)] {
        let body = [
            movi(R0, 0),
            load(Size::B2, R3, R6, at),
            mov(R5, R2),
            alui(AluOp::And, Width::W64, R5, 3),
            branchi(Condition::Lt, Width::W64, R5, 1, 10),
            mov(R4, R6),
            add(R4, R5),
            store(Size::B2, R4, 2, R1),
            load(Size::B2, R0, R6, at),
            add(R0, R3),
        ];
        let text = emitted(&body);
        assert_eq!(text.matches("MR_KNOWN(").count(), known, "at {at}: {text}");
    }
}

fn emitted(body: &[Insn]) -> String {
    let program = program(vec![function("f", around(body))], 1);
    let checked = millrace_check::check(&program, &Options::default()).unwrap();
    millrace_emit::alone::emit(&program, &checked, "known.c").unwrap()
}

#[test]
fn what_is_known_is_not_read_again() {
    let body = [
        load(Size::B2, R3, R6, 0),
        store(Size::B1, R6, 0, R1),
        load(Size::B2, R0, R6, 0),
        add(R0, R3),
    ];
    let text = emitted(&body);
    // The low byte is the stored one, the high one is what was loaded.
    let known = text.lines().find(|l| l.contains("MR_KNOWN(")).unwrap();
    assert!(
        known.contains("MR_KNOWN(mr_u16, p6_0, ") && known.contains("<< 8"),
        "{known}"
    );
    assert_eq!(text.matches("*(const mr_u16 *)p6_0").count(), 1);
}
