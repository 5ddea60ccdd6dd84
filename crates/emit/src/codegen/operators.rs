//! Operations of BPF (RFC 9669, section 4) as C expressions over numbers of 64 bits, whose operands bind as tightly as a
//! cast: of branches, of histories in modules, and of histories in the kernel.

use millrace_object::insn::{AluOp, ByteOrder, Condition, Width};

use super::c::{Code, Part};
use crate::c;

/// The operator of C, and whether its operands are signed.
pub fn operator(condition: Condition) -> (&'static str, bool) {
    match condition {
        Condition::Eq => ("==", false),
        Condition::Ne => ("!=", false),
        Condition::Gt => (">", false),
        Condition::Ge => (">=", false),
        Condition::Lt => ("<", false),
        Condition::Le => ("<=", false),
        Condition::SignedGt => (">", true),
        Condition::SignedGe => (">=", true),
        Condition::SignedLt => ("<", true),
        Condition::SignedLe => ("<=", true),
        Condition::Test => ("&", false),
    }
}

/// A condition.
pub fn compare(condition: Condition, width: Width, a: &dyn Part, b: &dyn Part) -> Code {
    let bits = bits(width);
    let (operator, signed) = operator(condition);
    let kind = if signed { "s" } else { "u" };
    let compared = c!(
        "({}{}){} {} ({}{}){}",
        kind,
        bits,
        a,
        operator,
        kind,
        bits,
        b
    );
    match condition {
        Condition::Test => c!("({}) != 0", compared),
        _ => compared,
    }
}

/// A result; none of a signed division.
pub fn arithmetic(op: AluOp, width: Width, a: &dyn Part, b: &dyn Part) -> Option<Code> {
    let bits = bits(width);
    let (a, b) = (c!("(u{}){}", bits, a), c!("(u{}){}", bits, b));
    let most = bits - 1;
    let value = match op {
        AluOp::Mov => b,
        AluOp::Add => c!("({} + {})", a, b),
        AluOp::Sub => c!("({} - {})", a, b),
        AluOp::Mul => c!("({} * {})", a, b),
        AluOp::Or => c!("({} | {})", a, b),
        AluOp::And => c!("({} & {})", a, b),
        AluOp::Xor => c!("({} ^ {})", a, b),
        AluOp::Lsh => c!("({} << ({} & {}))", a, b, most),
        AluOp::Rsh => c!("({} >> ({} & {}))", a, b, most),
        AluOp::Arsh => c!("(u{})((s{}){} >> ({} & {}))", bits, bits, a, b, most),
        // By zero: as the kernel has it.
        AluOp::Div => c!("({} ? {} / {} : 0)", b, a, b),
        AluOp::Mod => c!("({} ? {} % {} : {})", b, a, b, a),
        AluOp::SignedDiv | AluOp::SignedMod => return None,
    };
    Some(match width {
        Width::W64 => value,
        Width::W32 => c!("(u64){}", value),
    })
}

/// The lowest bits of a number in another order of bytes.
pub fn ordered(order: ByteOrder, bits: u32, value: &dyn Part) -> Code {
    match (order, bits) {
        (ByteOrder::ToLittle, 64) => c!("{}", value),
        (ByteOrder::ToLittle, bits) => c!("(u64)(u{}){}", bits, value),
        (_, bits) => c!("(u64)__builtin_bswap{}((u{}){})", bits, bits, value),
    }
}

fn bits(width: Width) -> u32 {
    match width {
        Width::W64 => 64,
        Width::W32 => 32,
    }
}
