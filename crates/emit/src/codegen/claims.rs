//! Code that looks at what the proof claims before each step, and ends the process where it is not so: for those who test
//! the checker and the emitter. What the code does not keep (a number that nobody needs any more, an address that is
//! written out where it is used) is not looked at, nor which byte of a value an address is of where the kind does not
//! tell (`KIND_behind`): of maps in maps, of constants, and of what workers share, which readers may see elsewhere.

use millrace_check::claims::{Claim, Place};
use millrace_check::domain::Scalar;
use millrace_check::facts::{FrameId, Op, StepId, written};
use millrace_object::insn::{Insn, REGISTERS, Reg};
use millrace_object::program::ObjectId;

use super::body::Body;
use super::c::{Code, Local, Statement};
use super::objects::is_constant;
use crate::c;

/// How far from its buffer the address of a packet's byte may be that nobody has compared yet: what is added at once.
const FAR: u32 = 1 << 17;

impl Body<'_> {
    /// The statements; none where nobody asked for claims. What was claimed before the step that this one `follows`, and
    /// stays as it was, has been looked at.
    pub(super) fn claims(&self, id: StepId, follows: Option<StepId>) -> Vec<Statement> {
        let claims = self.slice.flow.claims.as_ref();
        let Some(at) = claims.and_then(|c| c.before(id)) else {
            return Vec::new();
        };
        let step = self.slice.step(id);
        let looked = follows.and_then(|last| {
            let Op::Plain(insn) = &self.slice.step(last).op else {
                return None;
            };
            let calls = matches!(insn, Insn::Call { .. } | Insn::CallRegister { .. });
            Some((claims?.before(last)?, insn)).filter(|_| !calls)
        });
        let one = |reg: u8| {
            let (claim, reg) = (at.registers.get(usize::from(reg))?, Reg(reg));
            let again = looked.is_some_and(|(last, insn)| {
                written(insn) != Some(reg) && last.registers.get(usize::from(reg.0)) == Some(claim)
            });
            if again {
                return None;
            }
            let forms = self.demand.before(self.slice, id, step.frame, reg);
            let number = Code::from(Local::Number(step.frame, reg));
            let pointer = Code::from(Local::Pointer(step.frame, reg));
            let (holds, value) = match claim {
                Claim::Number(s) if forms.scalar => (within(s, &number)?, number),
                Claim::Pointer {
                    place: Place::Packet,
                    nullable: false,
                    ..
                } if forms.pointer => {
                    let span = "(u64)(pkt->ceiling - pkt->floor)";
                    let from = c!("(u64){} - (u64)pkt->floor + {}u", pointer, FAR);
                    (
                        c!("{} <= {} + 2 * {}u", from, span, FAR),
                        c!("(u64){}", pointer),
                    )
                }
                Claim::Pointer {
                    place: Place::Value(object),
                    least,
                    most,
                    nullable,
                } if forms.pointer
                    && let Some(lies) = self.lies(*object, &pointer, (*least, *most)) =>
                {
                    let holds = match nullable {
                        true => c!("!{} || {}", pointer, lies),
                        false => lies,
                    };
                    (holds, c!("(u64){}", pointer))
                }
                Claim::Pointer {
                    place: Place::Value(_) | Place::Record(_),
                    nullable: false,
                    ..
                } if forms.pointer => (pointer.clone(), c!("(u64){}", pointer)),
                _ => return None,
            };
            self.looked_at(id, &format!("r{}", reg.0), claim, (&holds, &value))
        };
        let mut all: Vec<Statement> = (0..REGISTERS as u8).filter_map(one).collect();
        // What begins or ends in the middle has not stored what it does not need.
        if self.runs_whole() && self.resume.is_none() {
            let stores = |insn: &Insn| matches!(insn, Insn::Store { .. } | Insn::Atomic { .. });
            let again = |slot| {
                looked.is_some_and(|(last, insn)| !stores(insn) && last.slots.contains(slot))
            };
            let slots = at.slots.iter().filter(|slot| !again(*slot));
            all.extend(slots.filter_map(|(from, size, claim)| {
                let Claim::Number(s) = claim else { return None };
                let value = self.slot(step.frame, i32::try_from(*from).ok()?, *size)?;
                self.looked_at(
                    id,
                    &format!("the stack at {from}"),
                    claim,
                    (&within(s, &value)?, &value),
                )
            }));
        }
        all
    }

    /// The statement that looks at a claim.
    fn looked_at(
        &self,
        id: StepId,
        what: &str,
        claim: &Claim,
        (holds, value): (&Code, &Code),
    ) -> Option<Statement> {
        let step = self.slice.step(id);
        let function = self.slice.flow.frames.get(step.frame.0)?.function.0;
        let claimed = match claim {
            Claim::Number(s) => s.to_string(),
            Claim::Pointer { least, most, .. } => format!("a pointer to bytes {least} to {most}"),
            _ => "a pointer".to_owned(),
        };
        let at = format!(
            "{what} before instruction {} of function {function}",
            step.pc
        );
        Some(c!("MR_CLAIM({}, \"{}, {}\", {});", holds, at, claimed, value).into())
    }

    /// That an address lies within a value of an object, at one of these bytes from its start; none where nobody tells.
    fn lies(&self, object: ObjectId, pointer: &Code, (least, most): (i64, i64)) -> Option<Code> {
        let declared = self.slice.program.objects.get(object.0)?;
        let span = most.checked_sub(least)?;
        // Further apart, the next value's bytes are among those that are claimed.
        let tells = self.unit.offers(object, "behind")
            && !declared.is_shape()
            && !is_constant(declared)
            && self.runs_whole()
            && (0..i64::from(declared.value_bytes)).contains(&span);
        let operands = self.unit.operands(object);
        let kind = self.unit.kind(object);
        tells.then(|| {
            c!(
                "{}_behind({}, {}, {}) <= {}",
                kind,
                operands,
                pointer,
                least,
                span
            )
        })
    }

    /// A number in a frame's stack as it lies there.
    fn slot(&self, frame: FrameId, from: i32, size: u8) -> Option<Code> {
        let object = self.stack.find(frame, from)?;
        let whole = object.from <= from && from + i32::from(size) <= object.to;
        let bits = u32::from(size) * 8;
        let name = Local::Stack(*object);
        let at = from - object.from;
        match bits {
            8 => whole.then(|| c!("(u64){}[{}]", name, at)),
            16 | 32 | 64 => whole.then(|| c!("(u64)mr_load{}({} + {})", bits, name, at)),
            _ => None,
        }
    }
}

/// That a local is one of these numbers, as far as that says anything.
fn within(s: &Scalar, local: &Code) -> Option<Code> {
    if let Some(c) = s.as_constant() {
        return Some(c!("{} == {}ull", local, format!("{:#x}", c)));
    }
    let mut all = Vec::new();
    if s.r64.umin > 0 || s.r64.umax < u64::MAX {
        let span = s.r64.umax.wrapping_sub(s.r64.umin);
        all.push(c!(
            "{} - {}ull <= {}ull",
            local,
            format!("{:#x}", s.r64.umin),
            format!("{:#x}", span)
        ));
    }
    if s.r64.smin > i64::MIN || s.r64.smax < i64::MAX {
        let span = (s.r64.smax as u64).wrapping_sub(s.r64.smin as u64);
        all.push(c!(
            "{} - {}ull <= {}ull",
            local,
            format!("{:#x}", s.r64.smin as u64),
            format!("{:#x}", span)
        ));
    }
    if s.r32.umin > 0 || s.r32.umax < u64::from(u32::MAX) {
        let span = s.r32.umax - s.r32.umin;
        all.push(c!(
            "(u32){} - {}u <= {}u",
            local,
            format!("{:#x}", s.r32.umin),
            format!("{:#x}", span)
        ));
    }
    if s.r32.smin > i64::from(i32::MIN) || s.r32.smax < i64::from(i32::MAX) {
        let span = (s.r32.smax - s.r32.smin) as u32;
        all.push(c!(
            "(u32){} - {}u <= {}u",
            local,
            format!("{:#x}", s.r32.smin as u32),
            format!("{:#x}", span)
        ));
    }
    if s.bits.mask != u64::MAX {
        let (known, value) = (!s.bits.mask, s.bits.value);
        all.push(c!(
            "({} & {}ull) == {}ull",
            local,
            format!("{:#x}", known),
            format!("{:#x}", value)
        ));
    }
    (!all.is_empty()).then(|| Code::join(&all, " && "))
}
