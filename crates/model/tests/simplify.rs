//! Simplification keeps values: random expressions, built with every rule at work, against the same
//! operations on numbers.

use std::collections::BTreeMap;

use millrace_model::expr::eval::{Assignment, apply, relation};
use millrace_model::expr::{Arena, Bin, ExprId, Node, Origin, Rel};
use proptest::prelude::*;

use crate::support::OPS;

/// One step of building: which operation, on which of the expressions so far.
type Step = (u8, usize, usize, u64);

/// Builds 64-bit expressions, each beside the number that it must be.
fn build(arena: &mut Arena, given: &Assignment, steps: &[Step]) -> Vec<(ExprId, u64)> {
    let mut all = Vec::new();
    for i in 0..3 {
        let e = arena.sym(&format!("x{i}"), 64, Origin::Helper);
        all.push((e, given.value(arena, e)));
    }
    for at in 0..4 {
        let at = arena.number(at, 64);
        let e = arena.byte(at);
        let wide = arena.resize(e, 64);
        all.push((wide, given.value(arena, e)));
    }
    for (what, i, j, c) in steps {
        let (a, x) = all[i % all.len()];
        let (b, y) = all[j % all.len()];
        let made = match what % 26 {
            op @ 0..13 => {
                let op = OPS[usize::from(op)];
                let (b, y) = if matches!(op, Bin::Shl | Bin::Shr | Bin::Sar) {
                    (arena.number(c % 64, 64), c % 64)
                } else {
                    (b, y)
                };
                (arena.binary(op, a, b), apply(op, 64, x, y))
            }
            13 => (arena.number(*c, 64), *c),
            14 => (arena.minus(a, b), x.wrapping_sub(y)),
            15 => (arena.swap(a, 64), x.swap_bytes()),
            16 => {
                let low = arena.swap(a, 16);
                (arena.resize(low, 64), u64::from((x as u16).swap_bytes()))
            }
            17 => {
                let (low, width) = ((c % 32) as u32, (c / 32 % 32 + 1) as u32);
                let part = arena.extract(a, low, width);
                (arena.resize(part, 64), x >> low & ((1 << width) - 1))
            }
            18 => {
                let part = arena.extract(a, 0, 16);
                (arena.sign_extend(part, 64), x as u16 as i16 as i64 as u64)
            }
            19 => {
                let rel = [Rel::Eq, Rel::Less, Rel::SignedLess][(c % 3) as usize];
                let e = arena.compare(rel, a, b);
                (arena.resize(e, 64), u64::from(relation(rel, 64, x, y)))
            }
            20 => {
                let less = arena.compare(Rel::Less, a, b);
                (arena.ite(less, a, b), x.min(y))
            }
            21 => {
                let sixty_three = arena.number(63, 64);
                let by = arena.binary(Bin::And, b, sixty_three);
                let set = arena.number(*c, 64);
                let shifted = arena.binary(Bin::Shr, set, by);
                let bit = arena.extract(shifted, 0, 1);
                (arena.resize(bit, 64), c >> (y & 63) & 1)
            }
            22 => {
                let less = arena.compare(Rel::Less, a, b);
                let (p, q) = (arena.number(*c, 64), arena.number(c.rotate_left(7), 64));
                let value = if x < y { *c } else { c.rotate_left(7) };
                (arena.ite(less, p, q), value)
            }
            23 => {
                let less = arena.compare(Rel::Less, a, b);
                (
                    arena.sign_extend(less, 64),
                    if x < y { u64::MAX } else { 0 },
                )
            }
            24 => {
                let sixty_three = arena.number(63, 64);
                let by = arena.binary(Bin::And, b, sixty_three);
                let op = [Bin::Shl, Bin::Shr, Bin::Sar][(c % 3) as usize];
                (arena.binary(op, a, by), apply(op, 64, x, y & 63))
            }
            _ => {
                let m = arena.number(0xffff, 64);
                (arena.binary(Bin::Rem, a, m), x % 0xffff)
            }
        };
        all.push(made);
    }
    all
}

fn assignment(arena: &mut Arena, numbers: [u64; 3], bytes: [u8; 4]) -> Assignment {
    let mut symbols = millrace_model::expr::ids::IdMap::default();
    for (i, n) in numbers.into_iter().enumerate() {
        let e = arena.sym(&format!("x{i}"), 64, Origin::Helper);
        if let Node::Sym(s) = arena.node(e) {
            symbols.insert(*s, n);
        }
    }
    let packet: BTreeMap<u64, u8> = (0..).zip(bytes).collect();
    Assignment::new(symbols, packet)
}

fn number() -> impl Strategy<Value = u64> {
    prop_oneof![
        any::<u64>(),
        0..70_u64,
        Just(0xffff),
        Just(0xff00),
        Just(u64::MAX),
        Just(1 << 63)
    ]
}

proptest! {
    #[test]
    fn every_rule_keeps_the_value(
        numbers in [number(), number(), number()],
        bytes in any::<[u8; 4]>(),
        steps in prop::collection::vec((any::<u8>(), any::<usize>(), any::<usize>(), number()), 1..24),
    ) {
        let mut arena = Arena::new();
        let given = assignment(&mut arena, numbers, bytes);
        for (e, value) in build(&mut arena, &given, &steps) {
            prop_assert_eq!(given.value(&arena, e), value, "{:?}", arena.node(e));
            prop_assert!(arena.bits(e).contains(value), "known bits of {:?}", arena.node(e));
        }
    }
}

/// A sum of bytes of the packet: factors, and a constant.
type Sum = ([i8; 4], i32);

fn sum(arena: &mut Arena, (factors, constant): Sum, width: u32) -> ExprId {
    let mut total = arena.number(i64::from(constant) as u64, width);
    for (at, factor) in (0..).zip(factors) {
        let at = arena.number(at, 64);
        let byte = arena.byte(at);
        let byte = arena.resize(byte, width);
        let factor = arena.number(i64::from(factor) as u64, width);
        let term = arena.binary(Bin::Mul, byte, factor);
        total = arena.binary(Bin::Add, total, term);
    }
    total
}

proptest! {
    /// Offsets of a packet whose borders move are such sums.
    #[test]
    fn sums_keep_their_order_and_their_sign(
        bytes in any::<[u8; 4]>(),
        sums in [(any::<[i8; 4]>(), any::<i32>()), (any::<[i8; 4]>(), any::<i32>())],
        width in prop_oneof![Just(16_u32), Just(32), Just(64)],
        alike in any::<bool>(),
    ) {
        let mut arena = Arena::new();
        let given = assignment(&mut arena, [0; 3], bytes);
        let [mut x, (factors, constant)] = sums;
        let y = (factors, constant % 300);
        if alike {
            // What is left of the difference is a constant.
            x = (y.0, y.1 / 3 * 2);
        }
        let (a, b) = (sum(&mut arena, x, width), sum(&mut arena, y, width));
        let (p, q) = (given.value(&arena, a), given.value(&arena, b));
        let less = arena.compare(Rel::SignedLess, a, b);
        prop_assert_eq!(given.value(&arena, less), u64::from(relation(Rel::SignedLess, width, p, q)));
        let wide = arena.sign_extend(a, 64);
        let by = 64 - width;
        prop_assert_eq!(given.value(&arena, wide), ((p << by) as i64 >> by) as u64);
        if alike && width > 16 {
            prop_assert!(arena.constant(less).is_some(), "{:?}", arena.node(less));
        }
    }
}

#[test]
fn a_field_taken_apart_is_a_field_again() {
    let mut arena = Arena::new();
    let bytes: Vec<ExprId> = (12..14)
        .map(|at| {
            let at = arena.number(at, 64);
            arena.byte(at)
        })
        .collect();
    // (p[12] << 8 | p[13]), and the swap of a little-endian load.
    let high = arena.resize(bytes[0], 64);
    let eight = arena.number(8, 64);
    let high = arena.binary(Bin::Shl, high, eight);
    let low = arena.resize(bytes[1], 64);
    let shifted = arena.binary(Bin::Or, high, low);
    let loaded = arena.concat(&[bytes[1], bytes[0]]);
    let swapped = arena.swap(loaded, 16);
    let swapped = arena.resize(swapped, 64);
    assert_eq!(shifted, swapped);
}
