//! Every operation of the domain against the same operation on numbers: what a description says of
//! its operands' results must hold for every pair of numbers that it describes.

use millrace_check::domain::assume::assume;
use millrace_check::domain::{Scalar, Tnum, alu};
use millrace_object::insn::{AluOp, ByteOrder, Condition, Size, Width};
use proptest::prelude::*;

const OPS: [AluOp; 14] = [
    AluOp::Add,
    AluOp::Sub,
    AluOp::Mul,
    AluOp::Div,
    AluOp::SignedDiv,
    AluOp::Mod,
    AluOp::SignedMod,
    AluOp::Or,
    AluOp::And,
    AluOp::Xor,
    AluOp::Lsh,
    AluOp::Rsh,
    AluOp::Arsh,
    AluOp::Mov,
];

const CONDITIONS: [Condition; 11] = [
    Condition::Eq,
    Condition::Ne,
    Condition::Gt,
    Condition::Ge,
    Condition::Lt,
    Condition::Le,
    Condition::SignedGt,
    Condition::SignedGe,
    Condition::SignedLt,
    Condition::SignedLe,
    Condition::Test,
];

/// RFC 9669, section 4.1, written for one number at a time.
fn concrete(op: AluOp, width: Width, a: u64, b: u64) -> u64 {
    match width {
        Width::W64 => match op {
            AluOp::Add => a.wrapping_add(b),
            AluOp::Sub => a.wrapping_sub(b),
            AluOp::Mul => a.wrapping_mul(b),
            AluOp::Div => a.checked_div(b).unwrap_or(0),
            AluOp::SignedDiv => {
                if b == 0 {
                    0
                } else {
                    (a as i64).wrapping_div(b as i64) as u64
                }
            }
            AluOp::Mod => a.checked_rem(b).unwrap_or(a),
            AluOp::SignedMod => {
                if b == 0 {
                    a
                } else {
                    (a as i64).wrapping_rem(b as i64) as u64
                }
            }
            AluOp::Or => a | b,
            AluOp::And => a & b,
            AluOp::Xor => a ^ b,
            AluOp::Lsh => a << (b & 63),
            AluOp::Rsh => a >> (b & 63),
            AluOp::Arsh => ((a as i64) >> (b & 63)) as u64,
            AluOp::Mov => b,
        },
        Width::W32 => {
            let (x, y) = (a as u32, b as u32);
            u64::from(match op {
                AluOp::Add => x.wrapping_add(y),
                AluOp::Sub => x.wrapping_sub(y),
                AluOp::Mul => x.wrapping_mul(y),
                AluOp::Div => x.checked_div(y).unwrap_or(0),
                AluOp::SignedDiv => {
                    if y == 0 {
                        0
                    } else {
                        (x as i32).wrapping_div(y as i32) as u32
                    }
                }
                AluOp::Mod => x.checked_rem(y).unwrap_or(x),
                AluOp::SignedMod => {
                    if y == 0 {
                        x
                    } else {
                        (x as i32).wrapping_rem(y as i32) as u32
                    }
                }
                AluOp::Or => x | y,
                AluOp::And => x & y,
                AluOp::Xor => x ^ y,
                AluOp::Lsh => x << (y & 31),
                AluOp::Rsh => x >> (y & 31),
                AluOp::Arsh => ((x as i32) >> (y & 31)) as u32,
                AluOp::Mov => y,
            })
        }
    }
}

fn holds(c: Condition, width: Width, a: u64, b: u64) -> bool {
    let (a, b, s, t) = match width {
        Width::W64 => (a, b, a as i64, b as i64),
        Width::W32 => (
            u64::from(a as u32),
            u64::from(b as u32),
            i64::from(a as u32 as i32),
            i64::from(b as u32 as i32),
        ),
    };
    match c {
        Condition::Eq => a == b,
        Condition::Ne => a != b,
        Condition::Gt => a > b,
        Condition::Ge => a >= b,
        Condition::Lt => a < b,
        Condition::Le => a <= b,
        Condition::SignedGt => s > t,
        Condition::SignedGe => s >= t,
        Condition::SignedLt => s < t,
        Condition::SignedLe => s <= t,
        Condition::Test => a & b != 0,
    }
}

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
        let c = concrete(OPS[op], width, x, y);
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
        prop_assert!(alu::neg(width, &s).contains(concrete(AluOp::Sub, width, 0, x)));
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
