//! Conditions of branches.

use millrace_check::facts::StepId;
use millrace_check::planted::{self, Planted};
use millrace_object::insn::{Condition, Insn, Operand, Width};

use super::body::Body;
use super::c::Code;
use super::forms::{self, compares_pointers};
use super::operators::operator;
use super::text::signed;
use crate::c;
use crate::error::Error;

/// The condition as a C expression.
///
/// # Errors
/// [`Error::Facts`] when an operand is a stack address that nothing touches.
pub fn condition(body: &Body, id: StepId, insn: &Insn) -> Result<Code, Error> {
    let step = body.slice.step(id);
    let Insn::Branch {
        condition,
        width,
        left,
        right,
        ..
    } = *insn
    else {
        return Err(body.slice.contradiction(step, "a branch that is none"));
    };
    let (operator, is_signed) = operator(condition);
    if compares_pointers(step, insn) {
        let pointer = body.pointer(id, left)?;
        return Ok(match (right, condition) {
            (Operand::Reg(right), _) => {
                c!("{} {} {}", pointer, operator, body.pointer(id, right)?)
            }
            (Operand::Imm(_), Condition::Eq) => c!("!{}", pointer),
            (Operand::Imm(_), _) => pointer,
        });
    }
    if is_signed && !planted::is(Planted::EmitSignedBranch) {
        let bits = if width == Width::W64 { 64 } else { 32 };
        let right = match right {
            Operand::Imm(value) if bits == 64 => signed(value).into(),
            Operand::Imm(value) => signed(i64::from(value as i32)).into(),
            Operand::Reg(right) => c!("(s{}){}", bits, body.scalar(id, right)?),
        };
        return Ok(c!(
            "(s{}){} {} {}",
            bits,
            body.scalar(id, left)?,
            operator,
            right
        ));
    }
    Ok(match forms::width(step, width) {
        Width::W64 => c!(
            "{} {} {}",
            body.scalar(id, left)?,
            operator,
            body.operand(id, right)?
        ),
        Width::W32 => c!(
            "(u32){} {} {}",
            body.scalar(id, left)?,
            operator,
            body.operand32(id, right)?
        ),
    })
}
