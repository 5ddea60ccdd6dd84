//! Registers, addresses and constants as C expressions.

use millrace_check::facts::{FrameId, Kind, StepId};
use millrace_check::planted::{self, Planted};
use millrace_object::insn::{Operand, Reg, Size};

use super::body::Body;
use super::c::{Code, Local, Statement};
use super::forms::{Forms, is_pointer};
use super::text::unsigned;
use crate::c;
use crate::error::Error;

impl Body<'_> {
    /// A register's value as a `u64`; binds as tightly as a cast.
    pub fn scalar(&self, id: StepId, reg: Reg) -> Result<Code, Error> {
        let step = self.slice.step(id);
        match step.before[usize::from(reg.0)] {
            Kind::Scalar | Kind::Mixed => {
                Ok(Local::register(step.frame, reg, Forms::SCALAR).into())
            }
            Kind::Unset => Ok("0".into()),
            _ => Ok(c!("(u64)(uintptr_t){}", self.pointer(id, reg)?)),
        }
    }

    /// A register's value as a `u8 *`; binds as tightly as a cast.
    pub fn pointer(&self, id: StepId, reg: Reg) -> Result<Code, Error> {
        let step = self.slice.step(id);
        let kind = step.before[usize::from(reg.0)];
        match kind {
            Kind::Scalar => Ok(c!(
                "(u8 *)(uintptr_t){}",
                Local::register(step.frame, reg, Forms::SCALAR)
            )),
            Kind::Unset => Ok("(u8 *)0".into()),
            Kind::Mixed => Ok(Local::register(step.frame, reg, Forms::POINTER).into()),
            _ => match self.constant(id, kind)? {
                Some(address) => Ok(address),
                None => Ok(Local::register(step.frame, reg, Forms::POINTER).into()),
            },
        }
    }

    /// The address expression of a kind that no local holds; binds as tightly as a cast.
    pub fn constant(&self, id: StepId, kind: Kind) -> Result<Option<Code>, Error> {
        match kind {
            Kind::Context => Ok(Some("(u8 *)pkt".into())),
            Kind::Object(object) => Ok(Some(c!("(u8 *)&{}", self.unit.instance(object)))),
            Kind::Stack {
                frame,
                offset: Some(offset),
            } => Ok(Some(self.stack_place(id, frame, offset)?.tight())),
            _ => Ok(None),
        }
    }

    /// `base + offset` as a pointer; binds as tightly as a cast.
    pub fn address(&self, id: StepId, base: Reg, offset: i16) -> Result<Code, Error> {
        let step = self.slice.step(id);
        if let Kind::Stack {
            frame,
            offset: Some(at),
        } = step.before[usize::from(base.0)]
        {
            let place = self.stack_place(id, frame, at.saturating_add(i32::from(offset)))?;
            return Ok(place.tight());
        }
        let pointer = self.pointer(id, base)?;
        Ok(match offset {
            0 => pointer,
            1.. => c!("({} + {})", pointer, offset),
            _ => c!("({} - {})", pointer, -i32::from(offset)),
        })
    }

    /// The right operand of an instruction as a 64-bit number.
    pub fn operand(&self, id: StepId, operand: Operand) -> Result<Code, Error> {
        match operand {
            Operand::Reg(reg) => self.scalar(id, reg),
            Operand::Imm(value) => Ok(unsigned(value as u64).into()),
        }
    }

    /// The right operand of a 32-bit instruction.
    pub fn operand32(&self, id: StepId, operand: Operand) -> Result<Code, Error> {
        match operand {
            Operand::Reg(reg) if planted::is(Planted::EmitNarrow) => self.scalar(id, reg),
            Operand::Reg(reg) => Ok(c!("(u32){}", self.scalar(id, reg)?)),
            Operand::Imm(value) => Ok(unsigned(u64::from(value as u32)).into()),
        }
    }

    /// Statements that set the demanded forms of a register of the step's frame from one expression,
    /// computed in the form `natural`.
    pub fn assign(&self, id: StepId, reg: Reg, natural: Forms, value: &Code) -> Vec<Statement> {
        let all = self.assigned(id, reg, natural, value);
        all.into_iter().map(Statement::Line).collect()
    }

    /// The same, each as a line.
    pub fn assigned(&self, id: StepId, reg: Reg, natural: Forms, value: &Code) -> Vec<Code> {
        let demanded = self.demand.after(self.slice, id, reg);
        let frame = self.slice.step(id).frame;
        let (number, pointer) = (Local::Number(frame, reg), Local::Pointer(frame, reg));
        let (own, other, cast, wanted, wanted_other) = match natural.pointer {
            false => (
                number,
                pointer,
                "(u8 *)(uintptr_t)",
                demanded.scalar,
                demanded.pointer,
            ),
            true => (
                pointer,
                number,
                "(u64)(uintptr_t)",
                demanded.pointer,
                demanded.scalar,
            ),
        };
        // None where a register is moved onto itself.
        let first = value.assigned(own).filter(|_| wanted);
        let second = wanted_other.then(|| match (wanted, value.is_word()) {
            (true, _) => c!("{} = {}{};", other, cast, own),
            (false, true) => c!("{} = {}{};", other, cast, value),
            (false, false) => c!("{} = {}({});", other, cast, value),
        });
        first.into_iter().chain(second).collect()
    }

    /// Whether a store of this register writes a pointer.
    pub fn stores_pointer(&self, id: StepId, reg: Reg) -> bool {
        is_pointer(self.slice.step(id).before[usize::from(reg.0)])
    }

    fn stack_place(&self, id: StepId, frame: FrameId, offset: i32) -> Result<Code, Error> {
        let Some(object) = self.stack.find(frame, offset) else {
            return Err(self.slice.contradiction(
                self.slice.step(id),
                format!("stack byte {offset} that nothing touches"),
            ));
        };
        Ok(match offset - object.from {
            0 => Local::Stack(*object).into(),
            // Nothing goes there; cast, so that it is a place beside an object and no index of an array.
            before @ ..0 => c!(
                "(u8 *){} - {}",
                Local::Stack(*object),
                before.unsigned_abs()
            ),
            after if after > object.to - object.from => {
                c!("(u8 *){} + {}", Local::Stack(*object), after)
            }
            inside => c!("{} + {}", Local::Stack(*object), inside),
        })
    }
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
