//! Every operation of the domain against the same operation on numbers: what a description says of
//! its operands' results must hold for every pair of numbers that it describes.

use millrace_assemble::oracle::{CONDITIONS, OPS, holds, result};
use millrace_check::domain::assume::assume;
use millrace_check::domain::{Scalar, Tnum, alu};
use millrace_object::insn::{AluOp, ByteOrder, Condition, Size, Width};
use proptest::prelude::*;

/// Numbers near the places where widths, signs and carries change.
fn number() -> impl Strategy<Value = u64> {
    prop_oneof![
        any::<u64>(),
        any::<u32>().prop_map(u64::from),
        any::<i8>().prop_map(|x| x as i64 as u64),
        (0u32..64, -2i64..3).prop_map(|(k, d)| (1u64 << k).wrapping_add(d as u64)),
        0u64..70,
    ]
}

/// A number and a description that holds it.
fn described() -> impl Strategy<Value = (u64, Scalar)> {
    (number(), number(), number(), number(), 0u8..8).prop_map(|(x, y, mask, z, shape)| {
        let mut s = Scalar::unknown();
        if shape & 1 != 0 {
            s.bits = Tnum {
                value: x & !mask,
                mask,
            };
        }
        if shape & 2 != 0 {
            s.r64.umin = x.min(y);
            s.r64.umax = x.max(y);
            s.r64.smin = (x as i64).min(z as i64);
            s.r64.smax = (x as i64).max(z as i64);
        }
        if shape & 4 != 0 {
            let low = |n: u64| u64::from(n as u32);
            let half = |n: u64| i64::from(n as u32 as i32);
            s.r32.umin = low(x).min(low(z));
            s.r32.umax = low(x).max(low(z));
            s.r32.smin = half(x).min(half(y));
            s.r32.smax = half(x).max(half(y));
        }
        (x, s.deduce().expect("x is a number of the description"))
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 20_000, ..ProptestConfig::default() })]

    #[test]
    fn deduction_keeps_every_number((x, s) in described()) {
        prop_assert!(s.contains(x), "{x:#x} {s:?}");
    }

    #[test]
    fn arithmetic((x, s) in described(), (y, t) in described(), op in 0usize..14, wide in any::<bool>()) {
        let width = if wide { Width::W64 } else { Width::W32 };
        let r = alu::alu(OPS[op], width, &s, &t);
        let c = result(OPS[op], width, x, y);
        prop_assert!(r.contains(c), "{:?} {width:?} {x:#x} {y:#x} = {c:#x} not in {r:?}\n{s:?}\n{t:?}", OPS[op]);
    }

    #[test]
    fn comparison((x, s) in described(), (y, t) in described(), c in 0usize..11, wide in any::<bool>()) {
        let width = if wide { Width::W64 } else { Width::W32 };
        let outcome = holds(CONDITIONS[c], width, x, y);
        let learned = assume(CONDITIONS[c], width, outcome, &s, &t);
        prop_assert!(learned.is_some_and(|(a, b)| a.contains(x) && b.contains(y)), "{:?} {width:?} {x:#x} {y:#x} {outcome} {learned:?}\n{s:?}\n{t:?}", CONDITIONS[c]);
    }

    #[test]
    fn unary((x, s) in described(), wide in any::<bool>()) {
        let width = if wide { Width::W64 } else { Width::W32 };
        prop_assert!(alu::neg(width, &s).contains(result(AluOp::Sub, width, 0, x)));
        for (size, value) in [(Size::B1, x as i8 as i64), (Size::B2, x as i16 as i64), (Size::B4, x as i32 as i64)] {
            let expected = if wide { value as u64 } else { u64::from(value as u32) };
            prop_assert!(alu::sign_extend(width, size, &s).contains(expected));
        }
        for (bits, swapped, kept) in [
            (16, u64::from((x as u16).swap_bytes()), x & 0xffff),
            (32, u64::from((x as u32).swap_bytes()), x & 0xffff_ffff),
            (64, x.swap_bytes(), x),
        ] {
            prop_assert!(alu::byte_order(ByteOrder::Swap, bits, &s).contains(swapped));
            prop_assert!(alu::byte_order(ByteOrder::ToBig, bits, &s).contains(swapped));
            prop_assert!(alu::byte_order(ByteOrder::ToLittle, bits, &s).contains(kept));
        }
    }

    #[test]
    fn joins_and_order((x, s) in described(), (y, t) in described()) {
        let j = s.join(&t);
        prop_assert!(j.contains(x) && j.contains(y) && j.includes(&s) && j.includes(&t));
        if s.includes(&t) {
            prop_assert!(s.contains(y));
        }
        match s.intersect(&t) {
            Some(both) => {
                prop_assert!(!(s.contains(y) && t.contains(y)) || both.contains(y));
                prop_assert!(!(s.contains(x) && t.contains(x)) || both.contains(x));
            }
            None => prop_assert!(!t.contains(x) && !s.contains(y)),
        }
    }
}

#[test]
fn bounds_are_as_sharp_as_the_kernels() {
    let s = Scalar::between(0, 100);
    let masked = alu::alu(
        AluOp::And,
        Width::W64,
        &Scalar::unknown(),
        &Scalar::constant(60),
    );
    assert_eq!((masked.r64.umin, masked.r64.umax), (0, 60));
    let shifted = alu::alu(AluOp::Lsh, Width::W32, &s, &Scalar::constant(2));
    assert_eq!((shifted.r64.umin, shifted.r64.umax), (0, 400));
    let (below, _) = assume(
        Condition::Lt,
        Width::W32,
        true,
        &Scalar::of_bits(32),
        &Scalar::constant(7),
    )
    .unwrap();
    assert_eq!((below.r64.umin, below.r64.umax), (0, 6));
    let aligned = alu::alu(
        AluOp::Lsh,
        Width::W64,
        &Scalar::between(0, 9),
        &Scalar::constant(2),
    );
    let (rest, _) = assume(
        Condition::Ne,
        Width::W64,
        true,
        &aligned,
        &Scalar::constant(36),
    )
    .unwrap();
    assert_eq!(rest.r64.umax, 32);
}
