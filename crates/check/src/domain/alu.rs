//! The effect of each arithmetic instruction on the numbers of a register.

use millrace_object::insn::{AluOp, ByteOrder, Size, Width};

use super::range::{Range, bits};
use super::scalar::Scalar;
use super::tnum::{Tnum, low_mask};
use crate::planted::{self, Planted};

/// `a op b` at the width; a 32-bit result is zero-extended.
#[must_use]
pub fn alu(op: AluOp, width: Width, a: &Scalar, b: &Scalar) -> Scalar {
    match width {
        Width::W64 => {
            let t = bits_of(op, Width::W64, a.bits, b);
            let r64 = range_of(op, Width::W64, a.r64, b);
            // The lower half of these depends on the lower halves alone.
            let r32 = match op {
                AluOp::Add | AluOp::Sub | AluOp::Mul | AluOp::Or | AluOp::And | AluOp::Xor => {
                    range_of(op, Width::W32, a.r32, b)
                }
                AluOp::Mov => b.r32,
                _ => Range::full(Width::W32),
            };
            Scalar { bits: t, r64, r32 }
                .deduce()
                .unwrap_or_else(Scalar::unknown)
        }
        Width::W32 if planted::is(Planted::UpperHalfKept) && op != AluOp::Mov => {
            alu(op, Width::W64, a, b)
        }
        Width::W32 => {
            let low = b.low32();
            let t = bits_of(op, Width::W32, a.bits.low(32), &low).low(32);
            let r32 = range_of(op, Width::W32, a.r32, &low);
            let mut s = Scalar {
                bits: t,
                r64: Range::full(Width::W64),
                r32,
            };
            s.r64.umin = r32.umin;
            s.r64.umax = r32.umax;
            s.deduce().unwrap_or_else(|| Scalar::of_bits(32))
        }
    }
}

/// The shifts that `b` may ask for at this width: taken modulo the width.
fn shifts(b: &Scalar, width: Width) -> (u32, u32) {
    let w = u64::from(bits(width));
    let r = b.r64;
    if r.umax < w {
        (r.umin as u32, r.umax as u32)
    } else if let Some(c) = b.as_constant() {
        ((c % w) as u32, (c % w) as u32)
    } else {
        (0, bits(width) - 1)
    }
}

fn range_of(op: AluOp, width: Width, a: Range, b: &Scalar) -> Range {
    let r = b.range(width);
    let (least, most) = shifts(b, width);
    match op {
        AluOp::Add => a.add(r, width),
        AluOp::Sub => a.sub(r, width),
        AluOp::Mul => a.mul(r, width),
        AluOp::Div => a.div(r, width),
        AluOp::SignedDiv => a.signed_div(r, width),
        AluOp::Mod => a.modulo(r, width),
        AluOp::SignedMod => a.signed_mod(r, width),
        AluOp::Or => a.or(r, width),
        AluOp::And => a.and(r, width),
        AluOp::Xor => Range::full(width),
        AluOp::Lsh => a.lsh(least, most, width),
        AluOp::Rsh => a.rsh(least, most, width),
        AluOp::Arsh if planted::is(Planted::ArithmeticShiftLogical) => a.rsh(least, most, width),
        AluOp::Arsh => a.arsh(least, most, width),
        AluOp::Mov => r,
    }
}

fn bits_of(op: AluOp, width: Width, a: Tnum, b: &Scalar) -> Tnum {
    let (least, most) = shifts(b, width);
    let shift = (least == most).then_some(least);
    match (op, shift) {
        (AluOp::Add, _) => a.plus(b.bits),
        (AluOp::Sub, _) => a.minus(b.bits),
        (AluOp::Mul, _) => a.times(b.bits),
        (AluOp::Or, _) => a.or(b.bits),
        (AluOp::And, _) => a.and(b.bits),
        (AluOp::Xor, _) => a.xor(b.bits),
        (AluOp::Mov, _) => b.bits,
        (AluOp::Lsh, Some(k)) => a.lsh(k),
        (AluOp::Rsh, Some(k)) => a.rsh(k),
        (AluOp::Arsh, Some(k)) if planted::is(Planted::ArithmeticShiftLogical) => a.rsh(k),
        (AluOp::Arsh, Some(k)) => match width {
            Width::W64 => a.arsh(k),
            Width::W32 => a.sign_extend(32).arsh(k),
        },
        _ => Tnum::UNKNOWN,
    }
}

/// `-a` at the width.
#[must_use]
pub fn neg(width: Width, a: &Scalar) -> Scalar {
    alu(AluOp::Sub, width, &Scalar::constant(0), a)
}

/// The low bytes of `a`, sign-extended to the width.
#[must_use]
pub fn sign_extend(width: Width, from: Size, a: &Scalar) -> Scalar {
    if planted::is(Planted::SignForgotten) {
        return zero_extend(from.bytes() * 8, a);
    }
    let count = from.bytes() * 8;
    let half = 1i64 << (count - 1).min(62);
    let fits = count < 64 && a.r64.smin >= -half && a.r64.smax < half;
    let s = if fits || count == 64 {
        *a
    } else {
        let mut s = Scalar::from_bits(a.bits.sign_extend(count));
        // That the upper bits are all alike, bits that are known one by one do not say.
        let (least, most) = match count {
            32 => (a.r32.smin, a.r32.smax),
            _ => (-half, half - 1),
        };
        for r in [&mut s.r64, &mut s.r32] {
            r.smin = r.smin.max(least);
            r.smax = r.smax.min(most);
        }
        s.deduce().unwrap_or_else(Scalar::unknown)
    };
    match width {
        Width::W64 => s,
        Width::W32 => s.low32(),
    }
}

/// The lowest `count` bits of `a`, the others 0.
#[must_use]
pub fn zero_extend(count: u32, a: &Scalar) -> Scalar {
    if count >= 64 || a.r64.umax <= low_mask(count) {
        return *a;
    }
    if count == 32 {
        return a.low32();
    }
    Scalar::from_bits(a.bits.low(count))
}

/// A byte-order instruction on the lowest `count` bits.
#[must_use]
pub fn byte_order(order: ByteOrder, count: u32, a: &Scalar) -> Scalar {
    match order {
        ByteOrder::ToLittle => zero_extend(count, a),
        ByteOrder::ToBig | ByteOrder::Swap => Scalar::from_bits(a.bits.swap(count)),
    }
}
