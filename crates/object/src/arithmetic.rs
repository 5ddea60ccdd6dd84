//! Arithmetic and comparison of two numbers (RFC 9669, sections 4.1 and 4.3).

use crate::insn::{AluOp, Condition, Width};

/// `a op b`; of 32 bits the result has no more.
#[must_use]
pub fn arithmetic(op: AluOp, width: Width, a: u64, b: u64) -> u64 {
    if width == Width::W32 {
        let (x, y) = (a as u32, b as u32);
        let signed = |f: fn(i32, i32) -> i32| f(x as i32, y as i32) as u32;
        return u64::from(match op {
            AluOp::Add => x.wrapping_add(y),
            AluOp::Sub => x.wrapping_sub(y),
            AluOp::Mul => x.wrapping_mul(y),
            AluOp::Div => x.checked_div(y).unwrap_or(0),
            AluOp::Mod => x.checked_rem(y).unwrap_or(x),
            AluOp::SignedDiv if y == 0 => 0,
            AluOp::SignedMod if y == 0 => x,
            AluOp::SignedDiv => signed(i32::wrapping_div),
            AluOp::SignedMod => signed(i32::wrapping_rem),
            AluOp::Or => x | y,
            AluOp::And => x & y,
            AluOp::Xor => x ^ y,
            AluOp::Lsh => x << (y & 31),
            AluOp::Rsh => x >> (y & 31),
            AluOp::Arsh => ((x as i32) >> (y & 31)) as u32,
            AluOp::Mov => y,
        });
    }
    match op {
        AluOp::Add => a.wrapping_add(b),
        AluOp::Sub => a.wrapping_sub(b),
        AluOp::Mul => a.wrapping_mul(b),
        AluOp::Div => a.checked_div(b).unwrap_or(0),
        AluOp::Mod => a.checked_rem(b).unwrap_or(a),
        AluOp::SignedDiv if b == 0 => 0,
        AluOp::SignedMod if b == 0 => a,
        AluOp::SignedDiv => (a as i64).wrapping_div(b as i64) as u64,
        AluOp::SignedMod => (a as i64).wrapping_rem(b as i64) as u64,
        AluOp::Or => a | b,
        AluOp::And => a & b,
        AluOp::Xor => a ^ b,
        AluOp::Lsh => a << (b & 63),
        AluOp::Rsh => a >> (b & 63),
        AluOp::Arsh => ((a as i64) >> (b & 63)) as u64,
        AluOp::Mov => b,
    }
}

/// `a condition b`
#[must_use]
pub fn compare(c: Condition, width: Width, a: u64, b: u64) -> bool {
    // Sign extension keeps both orders of 32-bit numbers.
    let (a, b) = if width == Width::W32 {
        (a as u32 as i32 as i64 as u64, b as u32 as i32 as i64 as u64)
    } else {
        (a, b)
    };
    match c {
        Condition::Eq => a == b,
        Condition::Ne => a != b,
        Condition::Gt => a > b,
        Condition::Ge => a >= b,
        Condition::Lt => a < b,
        Condition::Le => a <= b,
        Condition::SignedGt => a as i64 > b as i64,
        Condition::SignedGe => a as i64 >= b as i64,
        Condition::SignedLt => (a as i64) < b as i64,
        Condition::SignedLe => a as i64 <= b as i64,
        Condition::Test => a & b != 0,
    }
}
