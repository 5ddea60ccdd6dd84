//! Code that looks at what the proof claims before each step, and ends the process where it is not so: for those who test
//! the checker and the emitter. What the code does not keep (a number that nobody needs any more, an address that is
//! written out where it is used) is not looked at.

use millrace_check::claims::{Claim, Place};
use millrace_check::domain::Scalar;
use millrace_check::facts::StepId;
use millrace_object::insn::{REGISTERS, Reg};

use super::body::Body;
use super::forms::Forms;

/// How far from its buffer the address of a packet's byte may be that nobody has compared yet: what is added at once.
const FAR: u32 = 1 << 17;

impl Body<'_> {
    /// The statements; none where nobody asked for claims.
    pub(super) fn claims(&self, id: StepId) -> Vec<String> {
        let Some(at) = self.slice.flow.claims.as_ref().and_then(|c| c.before(id)) else {
            return Vec::new();
        };
        let step = self.slice.step(id);
        let one = |reg: u8| {
            let (claim, reg) = (at.registers.get(usize::from(reg))?, Reg(reg));
            let forms = self.demand.before(self.slice, id, step.frame, reg);
            let number = Self::local(step.frame, reg, Forms::SCALAR);
            let pointer = Self::local(step.frame, reg, Forms::POINTER);
            let (holds, value) = match claim {
                Claim::Number(s) if forms.scalar => (within(s, &number)?, number),
                Claim::Pointer {
                    place: Place::Packet,
                    nullable: false,
                    ..
                } if forms.pointer => {
                    let span = "(u64)(pkt->ceiling - pkt->floor)";
                    let from = format!("(u64){pointer} - (u64)pkt->floor + {FAR}u");
                    (
                        format!("{from} <= {span} + 2 * {FAR}u"),
                        format!("(u64){pointer}"),
                    )
                }
                Claim::Pointer {
                    place: Place::Value(_) | Place::Record(_),
                    nullable: false,
                    ..
                } if forms.pointer => (pointer.clone(), format!("(u64){pointer}")),
                _ => return None,
            };
            let function = self.slice.flow.frames.get(step.frame.0)?.function.0;
            let claimed = match claim {
                Claim::Number(s) => s.to_string(),
                _ => "a pointer".to_owned(),
            };
            let what = format!(
                "r{} before instruction {} of function {function}, {claimed}",
                reg.0, step.pc
            );
            Some(format!("MR_CLAIM({holds}, \"{what}\", {value});"))
        };
        (0..REGISTERS as u8).filter_map(one).collect()
    }
}

/// That a local is one of these numbers, as far as that says anything.
fn within(s: &Scalar, local: &str) -> Option<String> {
    if let Some(c) = s.as_constant() {
        return Some(format!("{local} == {c:#x}ull"));
    }
    let mut all = Vec::new();
    if s.r64.umin > 0 || s.r64.umax < u64::MAX {
        let span = s.r64.umax.wrapping_sub(s.r64.umin);
        all.push(format!("{local} - {:#x}ull <= {span:#x}ull", s.r64.umin));
    }
    if s.r64.smin > i64::MIN || s.r64.smax < i64::MAX {
        let span = (s.r64.smax as u64).wrapping_sub(s.r64.smin as u64);
        all.push(format!(
            "{local} - {:#x}ull <= {span:#x}ull",
            s.r64.smin as u64
        ));
    }
    if s.r32.umin > 0 || s.r32.umax < u64::from(u32::MAX) {
        let span = s.r32.umax - s.r32.umin;
        all.push(format!("(u32){local} - {:#x}u <= {span:#x}u", s.r32.umin));
    }
    if s.r32.smin > i64::from(i32::MIN) || s.r32.smax < i64::from(i32::MAX) {
        let span = (s.r32.smax - s.r32.smin) as u32;
        all.push(format!(
            "(u32){local} - {:#x}u <= {span:#x}u",
            s.r32.smin as u32
        ));
    }
    if s.bits.mask != u64::MAX {
        let (known, value) = (!s.bits.mask, s.bits.value);
        all.push(format!("({local} & {known:#x}ull) == {value:#x}ull"));
    }
    (!all.is_empty()).then(|| all.join(" && "))
}
