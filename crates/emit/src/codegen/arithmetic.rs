//! Arithmetic, RFC 9669 sections 4.1 and 4.2, in C without undefined behaviour: shifts are masked,
//! division by zero is defined, 32-bit results are zero-extended, everything wraps.

use millrace_check::facts::{Kind, StepId};
use millrace_check::planted::{self, Planted};
use millrace_object::insn::{AluOp, ByteOrder, Insn, Operand, Reg, Size, Width};

use super::body::Body;
use super::c::Code;
use super::forms::{self, Base, known_distance, pointer_base};
use super::text::unsigned;
use crate::c;
use crate::error::Error;

/// The result as a number.
pub fn scalar(body: &Body, id: StepId, insn: &Insn) -> Result<Code, Error> {
    if let Some(bytes) = known_distance(body.slice.step(id), insn) {
        return Ok(Code::from(unsigned(match insn {
            Insn::Alu {
                width: Width::W32, ..
            } => u64::from(bytes as u32),
            _ => bytes as u64,
        })));
    }
    match *insn {
        Insn::Alu {
            op,
            width: Width::W32,
            dst,
            src: Operand::Reg(src),
        } if body.slice.step(id).whole && op != AluOp::Mov => {
            let by = c!("(u64)(s32){}", body.scalar(id, src)?);
            wide(op, &body.scalar(id, dst)?, &by, Operand::Reg(src))
        }
        Insn::Alu {
            op,
            width,
            dst,
            src,
        } if forms::width(body.slice.step(id), width) == Width::W64 => {
            let left = if op == AluOp::Mov {
                Code::default()
            } else {
                body.scalar(id, dst)?
            };
            wide(op, &left, &body.operand(id, src)?, src)
        }
        Insn::Alu { op, dst, src, .. } => {
            let left = if op == AluOp::Mov {
                Code::default()
            } else {
                c!("(u32){}", body.scalar(id, dst)?)
            };
            narrow(op, &left, &body.operand32(id, src)?, src)
        }
        Insn::Neg { width, dst } => Ok(match width {
            Width::W64 => c!("-{}", body.scalar(id, dst)?),
            Width::W32 => c!("-(u32){}", body.scalar(id, dst)?),
        }),
        Insn::SignExtend {
            width, from, src, ..
        } => {
            let source = body.scalar(id, src)?;
            let bits = from.bytes() * 8;
            Ok(match (width, from) {
                (_, Size::B8) => source,
                (Width::W64, _) => c!("(u64)(s{}){}", bits, source),
                (Width::W32, _) => c!("(u32)(s{}){}", bits, source),
            })
        }
        Insn::ByteOrder { order, bits, dst } => {
            let value = body.scalar(id, dst)?;
            match (order, bits) {
                (ByteOrder::ToLittle, 64) => Ok(value),
                (ByteOrder::ToLittle, 16 | 32) => Ok(c!("(u{}){}", bits, value)),
                (ByteOrder::ToBig | ByteOrder::Swap, 16 | 32 | 64) => {
                    Ok(c!("__builtin_bswap{}((u{}){})", bits, bits, value))
                }
                _ => Err(body
                    .slice
                    .contradiction(body.slice.step(id), format!("a byte swap of {bits} bits"))),
            }
        }
        _ => Err(body
            .slice
            .unsupported(body.slice.step(id), format!("{insn:?}"))),
    }
}

/// The result as a pointer, where the instruction moves one.
pub fn pointer(body: &Body, id: StepId, insn: &Insn) -> Result<Option<Code>, Error> {
    let Insn::Alu {
        op,
        width,
        dst,
        src,
    } = *insn
    else {
        return Ok(None);
    };
    let step = body.slice.step(id);
    if let (AluOp::Mov, Width::W64, Operand::Reg(src)) = (op, forms::width(step, width), src) {
        return Ok(Some(body.pointer(id, src)?));
    }
    let minus = op == AluOp::Sub;
    let signed = if width == Width::W32 {
        "(s32)"
    } else {
        "(s64)"
    };
    Ok(match (pointer_base(step, op, width, dst, src), src) {
        (Some(Base::Left), Operand::Imm(by)) => {
            // The immediate's sign and the operation's together: distances are said as they are.
            let backwards = minus != (by < 0);
            let (pointer, sign) = (body.pointer(id, dst)?, if backwards { "-" } else { "+" });
            Some(Code::operation(
                &pointer,
                sign,
                &c!("{}", by.unsigned_abs()),
            ))
        }
        (Some(Base::Left), Operand::Reg(by)) => {
            let distance = body.scalar(id, by)?;
            // As a signed distance: a negative one in u64 would be an offset beyond the address space.
            let (pointer, sign) = (moved(body, id, dst)?, if minus { "-" } else { "+" });
            Some(Code::operation(
                &pointer,
                sign,
                &c!("{}{}", signed, distance),
            ))
        }
        (Some(Base::Right), Operand::Reg(base)) => {
            let distance = c!("{}{}", signed, body.scalar(id, dst)?);
            Some(Code::operation(&moved(body, id, base)?, "+", &distance))
        }
        _ => None,
    })
}

/// A pointer to which a variable distance is added. Only where an access goes must there be memory, so that a place
/// before an array is none of its elements' indices: the array is cast to a pointer.
fn moved(body: &Body, id: StepId, reg: Reg) -> Result<Code, Error> {
    let pointer = body.pointer(id, reg)?;
    let of_stack = matches!(
        body.slice.step(id).before[usize::from(reg.0)],
        Kind::Stack {
            offset: Some(_),
            ..
        }
    );
    Ok(if of_stack && pointer.is_word() {
        c!("(u8 *){}", pointer)
    } else {
        pointer
    })
}

fn wide(op: AluOp, left: &Code, right: &Code, src: Operand) -> Result<Code, Error> {
    let constant = immediate(src);
    Ok(match op {
        AluOp::Mov => right.clone(),
        AluOp::Add => sum(left, "+", "-", right, constant),
        AluOp::Sub => sum(left, "-", "+", right, constant),
        AluOp::Mul => Code::operation(left, "*", right),
        AluOp::Or => Code::operation(left, "|", right),
        AluOp::And => Code::operation(left, "&", right),
        AluOp::Xor => Code::operation(left, "^", right),
        AluOp::Lsh => Code::operation(left, "<<", &amount(right, constant, 63)),
        AluOp::Rsh => Code::operation(left, ">>", &amount(right, constant, 63)),
        AluOp::Arsh => c!("(u64)((s64){} >> {})", left, amount(right, constant, 63)),
        AluOp::Div if constant.is_some_and(|c| c != 0) => Code::operation(left, "/", right),
        AluOp::Mod if constant.is_some_and(|c| c != 0) => Code::operation(left, "%", right),
        AluOp::Div if planted::is(Planted::EmitDivision) => Code::operation(left, "/", right),
        AluOp::Div => c!("divide64({}, {})", left, right),
        AluOp::Mod => c!("modulo64({}, {})", left, right),
        AluOp::SignedDiv => c!("signed_divide64({}, {})", left, right),
        AluOp::SignedMod => c!("signed_modulo64({}, {})", left, right),
    })
}

fn narrow(op: AluOp, left: &Code, right: &Code, src: Operand) -> Result<Code, Error> {
    let constant = immediate(src).map(|c| c as u32);
    let wide = constant.map(i64::from);
    Ok(match op {
        AluOp::Mov => right.clone(),
        AluOp::Add => Code::operation(left, "+", right),
        AluOp::Sub => Code::operation(left, "-", right),
        AluOp::Mul => Code::operation(left, "*", right),
        AluOp::Or => Code::operation(left, "|", right),
        AluOp::And => Code::operation(left, "&", right),
        AluOp::Xor => Code::operation(left, "^", right),
        AluOp::Lsh => Code::operation(left, "<<", &amount(right, wide, 31)),
        AluOp::Rsh => Code::operation(left, ">>", &amount(right, wide, 31)),
        AluOp::Arsh => c!("(u32)((s32){} >> {})", left, amount(right, wide, 31)),
        AluOp::Div if constant.is_some_and(|c| c != 0) => Code::operation(left, "/", right),
        AluOp::Mod if constant.is_some_and(|c| c != 0) => Code::operation(left, "%", right),
        AluOp::Div => c!("divide32({}, {})", left, right),
        AluOp::Mod => c!("modulo32({}, {})", left, right),
        AluOp::SignedDiv => c!("signed_divide32({}, {})", left, right),
        AluOp::SignedMod => c!("signed_modulo32({}, {})", left, right),
    })
}

fn immediate(src: Operand) -> Option<i64> {
    match src {
        Operand::Imm(value) => Some(value),
        Operand::Reg(_) => None,
    }
}

/// Adding a negative constant reads better as a subtraction.
fn sum(
    left: &Code,
    plus: &'static str,
    minus: &'static str,
    right: &Code,
    constant: Option<i64>,
) -> Code {
    match constant {
        Some(c) if c < 0 => Code::operation(left, minus, &unsigned(c.unsigned_abs()).into()),
        _ => Code::operation(left, plus, right),
    }
}

fn amount(right: &Code, constant: Option<i64>, mask: i64) -> Code {
    match constant {
        Some(c) => c!("{}", c & mask),
        None if planted::is(Planted::EmitShift) => right.clone(),
        None => c!("({} & {})", right, mask),
    }
}
