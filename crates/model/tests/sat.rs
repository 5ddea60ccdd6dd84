//! The solver of our own against evaluation: with its symbols pinned an expression has one value, so that this
//! value is found possible, and no other.

use std::time::{Duration, Instant};

use millrace_model::expr::eval::Assignment;
use millrace_model::expr::{Arena, Bin, ExprId, Node, Origin, Rel, mask};
use millrace_model::solver::{Question, Said, Sat, Solve};
use proptest::prelude::*;

use crate::support::OPS;

const WIDTHS: [u32; 7] = [1, 3, 8, 13, 16, 32, 64];
/// A few operations, each on what was made before.
fn build(arena: &mut Arena, symbols: &[ExprId], width: u32, steps: &[(u8, u8, u8, u64)]) -> ExprId {
    let mut made = symbols.to_vec();
    for &(what, a, b, number) in steps {
        let pick = |i: u8| made[usize::from(i) % made.len()];
        let (x, y) = (pick(a), pick(b));
        let fixed = arena.number(number & mask(width), width);
        let y = if what & 0x40 == 0 { y } else { fixed };
        let what = usize::from(what & 0x3f) % (OPS.len() + 5);
        let e = match OPS.get(what) {
            // Only for numbers of 64 bits.
            Some(Bin::MulHigh) if width != 64 => arena.binary(Bin::Mul, x, y),
            // BPF shifts by less than the width.
            Some(op @ (Bin::Shl | Bin::Shr | Bin::Sar)) => {
                let most = arena.number(u64::from(width), width.max(8));
                let by = arena.resize(y, width.max(8));
                let by = arena.binary(Bin::Rem, by, most);
                let by = arena.resize(by, width);
                arena.binary(*op, x, by)
            }
            Some(op) => arena.binary(*op, x, y),
            None => {
                let rel = [Rel::Eq, Rel::Less, Rel::SignedLess][what % 3];
                let c = arena.compare(rel, x, y);
                match what % 2 {
                    0 => arena.ite(c, x, fixed),
                    _ => {
                        let half = arena.extract(x, 0, width.div_ceil(2));
                        arena.sign_extend(half, width)
                    }
                }
            }
        };
        made.push(e);
    }
    *made.last().unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 400,
        // Questions that take too long: some products and quotients of 64 bits are hard, hardly any is drawn.
        max_global_rejects: 8,
        max_shrink_iters: 100,
        ..ProptestConfig::default()
    })]

    #[test]
    fn the_value_and_no_other(
        width in 0..WIDTHS.len(),
        values in [any::<u64>(), any::<u64>(), any::<u64>()],
        small in any::<bool>(),
        steps in prop::collection::vec(any::<(u8, u8, u8, u64)>(), 1..7),
    ) {
        let width = WIDTHS[width];
        let mut arena = Arena::new();
        let symbols: Vec<ExprId> = ["x", "y", "z"]
            .iter()
            .map(|n| arena.sym(n, width, Origin::Helper))
            .collect();
        let e = build(&mut arena, &symbols, width, &steps);
        let mut at = Assignment::default();
        let mut pins = Vec::new();
        for (s, v) in symbols.iter().zip(values) {
            // Divisors and shifts are mostly small.
            let v = if small { v & 7 } else { v } & mask(width);
            let Node::Sym(id) = *arena.node(*s) else { unreachable!() };
            at.symbols.insert(id, v);
            let v = arena.number(v, width);
            pins.push(arena.compare(Rel::Eq, *s, v));
        }
        let at = Assignment::new(at.symbols.clone(), at.packet.clone());
        let value = at.value(&arena, e);
        let value = arena.number(value, width);
        let same = arena.compare(Rel::Eq, e, value);
        let other = arena.not(same);
        let far = Assignment::default();
        for near in [None, Some(&at), Some(&far)] {
            let mut sat = Sat::new(Duration::from_secs(2));
            let mut ask = |last: ExprId| {
                let all: Vec<ExprId> = pins.iter().copied().chain([last]).collect();
                let question = Question { near, ..Question::of(&all) };
                sat.solve(&arena, &question)
            };
            let (same, other) = (ask(same), ask(other));
            // No answer is not a wrong one.
            let open = |said: &Said| matches!(said, Said::Unknown(_) | Said::Roughly(_));
            prop_assume!(!open(&same) && !open(&other));
            prop_assert!(matches!(same, Said::Holds(_)));
            prop_assert!(matches!(other, Said::Fails(_)));
        }
    }
}

#[test]
fn an_answer_satisfies_the_question() {
    let mut a = Arena::new();
    let x = a.sym("x", 64, Origin::Helper);
    let y = a.sym("y", 64, Origin::Helper);
    let product = a.binary(Bin::Mul, x, y);
    let want = a.number(0x1234_5678_9abc_def0, 64);
    let equal = a.compare(Rel::Eq, product, want);
    let one = a.number(1, 64);
    let proper: Vec<ExprId> = [x, y]
        .iter()
        .map(|e| a.compare(Rel::Less, one, *e))
        .collect();
    let mut sat = Sat::new(Duration::from_secs(20));
    let Said::Holds(values) = sat.solve(&a, &Question::of(&[equal, proper[0], proper[1]])) else {
        panic!("the number has factors");
    };
    assert_eq!(values[&x].wrapping_mul(values[&y]), 0x1234_5678_9abc_def0);
}

#[test]
fn bytes_at_one_offset_are_one_byte_when_a_lemma_says_so() {
    let mut a = Arena::new();
    let [i, j] = ["i", "j"].map(|n| a.sym(n, 64, Origin::Helper));
    let (p, q) = (a.byte(i), a.byte(j));
    let there = a.compare(Rel::Eq, i, j);
    let same = a.compare(Rel::Eq, p, q);
    let other = a.not(same);
    let mut sat = Sat::new(Duration::from_secs(20));
    assert!(matches!(
        sat.solve(&a, &Question::of(&[there, other])),
        Said::Holds(_)
    ));
    assert!(matches!(
        sat.solve(
            &a,
            &Question {
                lemmas: &[(p, q)],
                ..Question::of(&[there, other])
            }
        ),
        Said::Fails(_)
    ));
}

#[test]
fn a_question_too_hard_ends_in_time() {
    let mut a = Arena::new();
    let [x, y] = ["x", "y"].map(|n| a.sym(n, 64, Origin::Helper));
    let product = a.binary(Bin::Mul, x, y);
    // Two primes next to 2^32, and no factor of more than 32 bits.
    let want = a.number(4_294_967_291 * 4_294_967_279, 64);
    let equal = a.compare(Rel::Eq, product, want);
    let most = a.number(1 << 32, 64);
    let small: Vec<ExprId> = [x, y]
        .iter()
        .map(|e| a.compare(Rel::Less, *e, most))
        .collect();
    let one = a.number(1, 64);
    let proper: Vec<ExprId> = [x, y]
        .iter()
        .map(|e| a.compare(Rel::Less, one, *e))
        .collect();
    let mut sat = Sat::new(Duration::from_millis(200));
    let began = Instant::now();
    let all = [equal, small[0], small[1], proper[0], proper[1]];
    let said = sat.solve(&a, &Question::of(&all));
    assert!(!matches!(said, Said::Fails(_)));
    assert!(began.elapsed() < Duration::from_secs(5));
}

#[test]
fn what_products_and_quotients_come_to_may_be_left_open() {
    let mut a = Arena::new();
    let [x, y] = ["x", "y"].map(|n| a.sym(n, 64, Origin::Helper));
    let [seven, five] = [7, 5].map(|n| a.number(n, 64));
    let rest = a.binary(Bin::Rem, x, y);
    let even = a.compare(Rel::Eq, rest, five);
    let by_seven = a.compare(Rel::Eq, y, seven);
    let all = [even, by_seven];
    let roughly = Question {
        rough: true,
        ..Question::of(&all)
    };
    let mut sat = Sat::new(Duration::from_secs(20));
    let said = sat.solve(&a, &roughly);
    assert!(matches!(&said, Said::Roughly(v) if v[&y] == 7), "{said:?}");
    let said = sat.solve(&a, &Question::of(&all));
    assert!(
        matches!(&said, Said::Holds(v) if v[&x] % 7 == 5),
        "{said:?}"
    );
    // Nothing in it is a product: there is nothing to leave open.
    let plain = Question {
        rough: true,
        ..Question::of(&all[1..])
    };
    assert!(matches!(sat.solve(&a, &plain), Said::Holds(_)));
}

#[test]
fn a_question_too_large_ends_in_time() {
    let mut a = Arena::new();
    let x = a.sym("x", 64, Origin::Helper);
    let mut e = x;
    for i in 0..200 {
        let y = a.sym(&format!("y{i}"), 64, Origin::Helper);
        e = a.binary(Bin::Mul, e, y);
    }
    let want = a.number(12_345, 64);
    let equal = a.compare(Rel::Eq, e, want);
    let mut sat = Sat::new(Duration::from_millis(200));
    let began = Instant::now();
    assert!(matches!(
        sat.solve(&a, &Question::of(&[equal])),
        Said::Unknown(_)
    ));
    assert!(began.elapsed() < Duration::from_secs(5));
    // What it kept of that does not stand in the way of the next.
    let small = a.compare(Rel::Less, x, want);
    assert!(matches!(
        sat.solve(&a, &Question::of(&[small])),
        Said::Holds(_)
    ));
}
