//! The claims of a proof about registers and stack slots before each step, for executions that verify them: the
//! reference interpreter, and emitted code that checks itself. Gathered on request only (`Options::claims`): a finished
//! proof needs none of it.

use millrace_object::insn::{REGISTERS, STACK};
use millrace_object::program::ObjectId;

use crate::domain::{Region, Scalar, Value};
use crate::ids::{FrameId, StepId};
use crate::state::FrameState;

/// Contents of a register or a slot.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Claim {
    /// nobody has been there; the bottom of joins
    Unvisited,
    /// nothing is claimed
    Any,
    /// one of these numbers
    Number(Scalar),
    /// a pointer
    Pointer {
        /// into what
        place: Place,
        /// least offset from its start (of a frame: from its `r10`)
        least: i64,
        /// greatest offset
        most: i64,
        /// or 0
        nullable: bool,
    },
}

/// Memory that a pointer leads into.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Place {
    /// the context
    Context,
    /// the packet, its metadata or its end; which byte is not claimed
    Packet,
    /// a frame's stack
    Stack(FrameId),
    /// a value of an object
    Value(ObjectId),
    /// a record of an object
    Record(ObjectId),
}

impl Claim {
    /// Claim of one visit.
    #[must_use]
    pub fn of(value: &Value) -> Self {
        let p = match value {
            Value::Gone(_) => return Claim::Any,
            Value::Scalar(s, _) if s.is_unknown() => return Claim::Any,
            Value::Scalar(s, _) => return Claim::Number(*s),
            Value::Pointer(p) => p,
        };
        let place = match p.region {
            _ if p.half => return Claim::Any,
            Region::Context => Place::Context,
            Region::Packet(_) | Region::Meta(_) | Region::PacketEnd => Place::Packet,
            Region::Stack(frame) => Place::Stack(frame),
            Region::Value(o) => Place::Value(o),
            Region::Record { object, .. } => Place::Record(object),
            Region::Moved(_) | Region::Object(_) | Region::Function(_) | Region::Inner(_) => {
                return Claim::Any;
            }
        };
        Claim::Pointer {
            place,
            least: p.least(),
            most: p.most(),
            nullable: p.nullable && !p.sure,
        }
    }

    /// Joint claim of two visits.
    #[must_use]
    pub fn join(self, other: Self) -> Self {
        use Claim::{Any, Number, Pointer, Unvisited};
        match (self, other) {
            (Unvisited, c) | (c, Unvisited) => c,
            (Number(a), Number(b)) => {
                let both = a.join(&b);
                if both.is_unknown() { Any } else { Number(both) }
            }
            (
                Pointer {
                    place,
                    least,
                    most,
                    nullable,
                },
                Pointer {
                    place: p,
                    least: l,
                    most: m,
                    nullable: n,
                },
            ) if place == p => Pointer {
                place,
                least: least.min(l),
                most: most.max(m),
                nullable: nullable || n,
            },
            (Number(zero), p @ Pointer { .. }) | (p @ Pointer { .. }, Number(zero))
                if zero.as_constant() == Some(0) =>
            {
                match p {
                    Pointer {
                        place, least, most, ..
                    } => Pointer {
                        place,
                        least,
                        most,
                        nullable: true,
                    },
                    _ => Any,
                }
            }
            _ => Any,
        }
    }
}

/// Claims before one step.
#[derive(Clone, Debug)]
pub struct At {
    /// of `r0` to `r10` of the step's frame
    pub registers: [Claim; REGISTERS],
    /// of whole values in its stack: the first byte from `r10`, bytes, and what they hold
    pub slots: Vec<(i64, u8, Claim)>,
    visited: bool,
}

impl At {
    const NONE: Self = Self {
        registers: [Claim::Unvisited; REGISTERS],
        slots: Vec::new(),
        visited: false,
    };

    fn visit(&mut self, frame: &FrameState) {
        for (claim, value) in self.registers.iter_mut().zip(&frame.regs) {
            *claim = claim.join(Claim::of(value));
        }
        let spills = frame.spills.iter().map(|s| {
            let from = i64::from(s.at) - STACK;
            (from, s.size, Claim::of(&s.value))
        });
        if self.visited {
            let now: Vec<_> = spills.collect();
            self.slots.retain_mut(|(from, size, claim)| {
                let there = now.iter().find(|s| (s.0, s.1) == (*from, *size));
                *claim = there.map_or(Claim::Any, |s| claim.join(s.2));
                *claim != Claim::Any
            });
        } else {
            self.slots = spills.filter(|s| s.2 != Claim::Any).collect();
        }
        self.visited = true;
    }
}

/// Claims of a flow, by step.
#[derive(Clone, Debug, Default)]
pub struct Claims(Vec<At>);

impl Claims {
    /// Nothing yet of so many steps.
    #[must_use]
    pub fn of(steps: usize) -> Self {
        Self(vec![At::NONE; steps])
    }

    /// A visit to a step begins with this frame.
    pub fn visit(&mut self, at: StepId, frame: &FrameState) {
        if let Some(step) = self.0.get_mut(at.0) {
            step.visit(frame);
        }
    }

    /// Claims before a step; none if it was not visited.
    #[must_use]
    pub fn before(&self, at: StepId) -> Option<&At> {
        self.0.get(at.0).filter(|step| step.visited)
    }
}
