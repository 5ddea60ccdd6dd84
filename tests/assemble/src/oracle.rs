//! What operations do to numbers, by RFC 9669, sections 4.1 and 4.3: written apart from `millrace_object::arithmetic`, which it is
//! to be compared with.

use millrace_object::insn::{AluOp, Condition, Width};

/// All operations.
pub const OPS: [AluOp; 14] = [
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

/// All conditions.
pub const CONDITIONS: [Condition; 11] = [
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

/// `a op b`; of 32 bits the result has no more.
pub fn result(op: AluOp, width: Width, a: u64, b: u64) -> u64 {
    match width {
        Width::W64 => match op {
            AluOp::Add => a.wrapping_add(b),
            AluOp::Sub => a.wrapping_sub(b),
            AluOp::Mul => a.wrapping_mul(b),
            AluOp::Div => a.checked_div(b).unwrap_or(0),
            AluOp::SignedDiv if b == 0 => 0,
            AluOp::SignedDiv => (a as i64).wrapping_div(b as i64) as u64,
            AluOp::Mod => a.checked_rem(b).unwrap_or(a),
            AluOp::SignedMod if b == 0 => a,
            AluOp::SignedMod => (a as i64).wrapping_rem(b as i64) as u64,
            AluOp::Or => a | b,
            AluOp::And => a & b,
            AluOp::Xor => a ^ b,
            AluOp::Lsh => a.wrapping_shl(b as u32),
            AluOp::Rsh => a.wrapping_shr(b as u32),
            AluOp::Arsh => (a as i64).wrapping_shr(b as u32) as u64,
            AluOp::Mov => b,
        },
        Width::W32 => {
            let (a, b) = (a as u32, b as u32);
            u64::from(match op {
                AluOp::Add => a.wrapping_add(b),
                AluOp::Sub => a.wrapping_sub(b),
                AluOp::Mul => a.wrapping_mul(b),
                AluOp::Div => a.checked_div(b).unwrap_or(0),
                AluOp::SignedDiv if b == 0 => 0,
                AluOp::SignedDiv => (a as i32).wrapping_div(b as i32) as u32,
                AluOp::Mod => a.checked_rem(b).unwrap_or(a),
                AluOp::SignedMod if b == 0 => a,
                AluOp::SignedMod => (a as i32).wrapping_rem(b as i32) as u32,
                AluOp::Or => a | b,
                AluOp::And => a & b,
                AluOp::Xor => a ^ b,
                AluOp::Lsh => a.wrapping_shl(b),
                AluOp::Rsh => a.wrapping_shr(b),
                AluOp::Arsh => (a as i32).wrapping_shr(b) as u32,
                AluOp::Mov => b,
            })
        }
    }
}

/// `a condition b`
pub fn holds(condition: Condition, width: Width, a: u64, b: u64) -> bool {
    let (a, b, sa, sb) = match width {
        Width::W64 => (a, b, a as i64, b as i64),
        Width::W32 => (
            a & 0xffff_ffff,
            b & 0xffff_ffff,
            i64::from(a as i32),
            i64::from(b as i32),
        ),
    };
    match condition {
        Condition::Eq => a == b,
        Condition::Ne => a != b,
        Condition::Gt => a > b,
        Condition::Ge => a >= b,
        Condition::Lt => a < b,
        Condition::Le => a <= b,
        Condition::SignedGt => sa > sb,
        Condition::SignedGe => sa >= sb,
        Condition::SignedLt => sa < sb,
        Condition::SignedLe => sa <= sb,
        Condition::Test => a & b != 0,
    }
}
