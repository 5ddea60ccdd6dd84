//! Registers, addresses and constants as C expressions.

use millrace_check::facts::{FrameId, Kind, StepId};
use millrace_check::planted::{self, Planted};
use millrace_object::insn::{Operand, Reg, Size};

use super::body::Body;
use super::forms::{Forms, is_pointer};
use super::text::unsigned;
use crate::error::Error;

impl Body<'_> {
    /// A register's value as a `u64`; binds as tightly as a cast.
    pub fn scalar(&self, id: StepId, reg: Reg) -> Result<String, Error> {
        let step = self.slice.step(id);
        match step.before[usize::from(reg.0)] {
            Kind::Scalar | Kind::Mixed => Ok(Body::local(step.frame, reg, Forms::SCALAR)),
            Kind::Unset => Ok("0".into()),
            _ => Ok(format!("(u64)(uintptr_t){}", self.pointer(id, reg)?)),
        }
    }

    /// A register's value as a `u8 *`; binds as tightly as a cast.
    pub fn pointer(&self, id: StepId, reg: Reg) -> Result<String, Error> {
        let step = self.slice.step(id);
        let kind = step.before[usize::from(reg.0)];
        match kind {
            Kind::Scalar => Ok(format!(
                "(u8 *)(uintptr_t){}",
                Body::local(step.frame, reg, Forms::SCALAR)
            )),
            Kind::Unset => Ok("(u8 *)0".into()),
            Kind::Mixed => Ok(Body::local(step.frame, reg, Forms::POINTER)),
            _ => match self.constant(id, kind)? {
                Some(address) => Ok(address),
                None => Ok(Body::local(step.frame, reg, Forms::POINTER)),
            },
        }
    }

    /// The address expression of a kind that no local holds; binds as tightly as a cast.
    pub fn constant(&self, id: StepId, kind: Kind) -> Result<Option<String>, Error> {
        match kind {
            Kind::Context => Ok(Some("(u8 *)pkt".into())),
            Kind::Object(object) => Ok(Some(format!("(u8 *)&{}", self.unit.instance(object)))),
            Kind::Stack {
                frame,
                offset: Some(offset),
            } => {
                let place = self.stack_place(id, frame, offset)?;
                Ok(Some(if place.contains(' ') {
                    format!("({place})")
                } else {
                    place
                }))
            }
            _ => Ok(None),
        }
    }

    /// `base + offset` as a pointer; binds as tightly as a cast.
    pub fn address(&self, id: StepId, base: Reg, offset: i16) -> Result<String, Error> {
        let step = self.slice.step(id);
        if let Kind::Stack {
            frame,
            offset: Some(at),
        } = step.before[usize::from(base.0)]
        {
            let place = self.stack_place(id, frame, at.saturating_add(i32::from(offset)))?;
            return Ok(if place.contains(' ') {
                format!("({place})")
            } else {
                place
            });
        }
        let pointer = self.pointer(id, base)?;
        Ok(match offset {
            0 => pointer,
            1.. => format!("({pointer} + {offset})"),
            _ => format!("({pointer} - {})", -i32::from(offset)),
        })
    }

    /// The right operand of an instruction as a 64-bit number.
    pub fn operand(&self, id: StepId, operand: Operand) -> Result<String, Error> {
        match operand {
            Operand::Reg(reg) => self.scalar(id, reg),
            Operand::Imm(value) => Ok(unsigned(value as u64)),
        }
    }

    /// The right operand of a 32-bit instruction.
    pub fn operand32(&self, id: StepId, operand: Operand) -> Result<String, Error> {
        match operand {
            Operand::Reg(reg) if planted::is(Planted::EmitNarrow) => self.scalar(id, reg),
            Operand::Reg(reg) => Ok(format!("(u32){}", self.scalar(id, reg)?)),
            Operand::Imm(value) => Ok(unsigned(u64::from(value as u32))),
        }
    }

    /// Statements that set the demanded forms of a register of the step's frame from one expression,
    /// computed in the form `natural`.
    pub fn assign(&self, id: StepId, reg: Reg, natural: Forms, expression: &str) -> Vec<String> {
        let demanded = self.demand.after(self.slice, id, reg);
        let frame = self.slice.step(id).frame;
        let scalar = Body::local(frame, reg, Forms::SCALAR);
        let pointer = Body::local(frame, reg, Forms::POINTER);
        let simple = expression
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || c == '_');
        let grouped = if simple {
            expression.to_owned()
        } else {
            format!("({expression})")
        };
        let statements = match (natural.pointer, demanded.scalar, demanded.pointer) {
            (_, false, false) => Vec::new(),
            (false, true, false) => vec![set(&scalar, expression)],
            (false, true, true) => vec![
                set(&scalar, expression),
                format!("{pointer} = (u8 *)(uintptr_t){scalar};"),
            ],
            (false, false, true) => vec![format!("{pointer} = (u8 *)(uintptr_t){grouped};")],
            (true, false, true) => vec![set(&pointer, expression)],
            (true, true, true) => vec![
                set(&pointer, expression),
                format!("{scalar} = (u64)(uintptr_t){pointer};"),
            ],
            (true, true, false) => vec![format!("{scalar} = (u64)(uintptr_t){grouped};")],
        };
        // Moving a register onto itself.
        statements.into_iter().filter(|s| !s.is_empty()).collect()
    }

    /// Whether a store of this register writes a pointer.
    pub fn stores_pointer(&self, id: StepId, reg: Reg) -> bool {
        is_pointer(self.slice.step(id).before[usize::from(reg.0)])
    }

    fn stack_place(&self, id: StepId, frame: FrameId, offset: i32) -> Result<String, Error> {
        let Some(object) = self.stack.find(frame, offset) else {
            return Err(self.slice.contradiction(
                self.slice.step(id),
                format!("stack byte {offset} that nothing touches"),
            ));
        };
        Ok(match offset - object.from {
            0 => object.name(),
            // Nothing goes there; cast, so that it is a place beside an object and no index of an array.
            before @ ..0 => format!("(u8 *){} - {}", object.name(), before.unsigned_abs()),
            after if after > object.to - object.from => {
                format!("(u8 *){} + {after}", object.name())
            }
            inside => format!("{} + {inside}", object.name()),
        })
    }
}

/// `place = expression;`, as a compound assignment where the expression begins with the place;
/// empty where nothing changes.
fn set(place: &str, expression: &str) -> String {
    if place == expression {
        return String::new();
    }
    if let Some(rest) = expression.strip_prefix(place)
        && let Some((operator, right)) = rest.strip_prefix(' ').and_then(|r| r.split_once(' '))
        && matches!(operator, "+" | "-" | "*" | "&" | "|" | "^" | "<<" | ">>" | "/" | "%")
        // A single operator only: `a - b + c` would become `a -= b + c`, which is another sum.
        && !right.contains(' ')
        // `a &= a` looks like a slip to clang.
        && right != place
    {
        return format!("{place} {operator}= {right};");
    }
    format!("{place} = {expression};")
}

/// The unaligned type of a memory access.
pub fn memory_type(size: Size, signed: bool) -> &'static str {
    match (size, signed && !planted::is(Planted::EmitSignedLoad)) {
        (Size::B1, false) => "u8",
        (Size::B2, false) => "mr_u16",
        (Size::B4, false) => "mr_u32",
        (Size::B8, false) => "mr_u64",
        (Size::B1, true) => "s8",
        (Size::B2, true) => "mr_s16",
        (Size::B4, true) => "mr_s32",
        (Size::B8, true) => "mr_s64",
    }
}
