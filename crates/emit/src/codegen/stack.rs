//! The stack of each frame as independent C objects.
//!
//! One array a frame would tie every spilled register, key and value together: LLVM promotes an
//! object to registers only as a whole. Bytes that some access or helper touches together form one
//! object; objects that never meet stay apart.

use millrace_check::facts::{Access, ArgFact, FrameId, Kind, Op, StepId};
use millrace_object::insn::{AluOp, Insn, Operand, Reg};

use super::demand::Demand;
use super::forms::{is_address, known_distance};
use super::origin;
use super::slice::{Role, Slice};
use crate::error::Error;

/// One local array.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct StackObject {
    /// whose stack
    pub frame: FrameId,
    /// first byte, from `r10`, negative
    pub from: i32,
    /// one past the last byte, at most 0
    pub to: i32,
}

impl StackObject {
    /// Its name in C: the frame, and how far below `r10` it begins.
    pub fn name(&self) -> String {
        format!("s{}_{}", self.frame.0, -i64::from(self.from))
    }
}

/// The objects of all frames.
#[derive(Clone)]
pub struct Stack {
    /// by frame, each ascending and disjoint
    frames: Vec<Vec<StackObject>>,
    /// by frame, the lowest byte that there can be an object of
    lowest: Vec<i32>,
}

/// By frame, the lowest byte that the program touches; -1 where it touches none.
fn lowest(slice: &Slice) -> Vec<i32> {
    let bytes = slice.flow.frames.iter().map(|f| f.stack_bytes);
    bytes.map(|b| -(b.max(1) as i32)).collect()
}

impl Stack {
    /// Splits the stacks of a slice.
    ///
    /// # Errors
    /// [`Error::Facts`] when an access is outside its frame's stack.
    pub fn split(slice: &Slice, demand: &Demand) -> Result<Stack, Error> {
        let mut ranges: Vec<Vec<(i32, i32)>> = vec![Vec::new(); slice.flow.frames.len()];
        let order = slice.layout();
        for &id in &order {
            for object in touched(slice, id) {
                let Some(frame) = slice.flow.frames.get(object.frame.0) else {
                    return Err(slice.contradiction(slice.step(id), "a frame that does not exist"));
                };
                if object.from >= object.to
                    || object.to > 0
                    || i64::from(object.from) < -i64::from(frame.stack_bytes)
                {
                    return Err(slice.contradiction(
                        slice.step(id),
                        format!(
                            "stack bytes {}..{} of a frame of {}",
                            object.from, object.to, frame.stack_bytes
                        ),
                    ));
                }
                ranges[object.frame.0].push((object.from, object.to));
            }
        }
        let lowest = lowest(slice);
        for span in origin::spans(slice) {
            let lowest = lowest[span.frame.0];
            let (from, to) = (span.from.clamp(lowest, -1), span.to.min(0));
            ranges[span.frame.0].push((from, to.max(from + 1)));
        }
        for &id in &order {
            for (frame, offset) in materialised(slice, demand, id) {
                let at = offset.clamp(lowest[frame.0], -1);
                ranges[frame.0].push((at, at + 1));
            }
        }
        let merge = |(frame, mut ranges): (usize, Vec<(i32, i32)>)| {
            ranges.sort_unstable();
            let mut objects: Vec<StackObject> = Vec::new();
            for (from, to) in ranges {
                match objects.last_mut() {
                    Some(last) if from < last.to => last.to = last.to.max(to),
                    _ => objects.push(StackObject {
                        frame: FrameId(frame),
                        from,
                        to,
                    }),
                }
            }
            objects
        };
        Ok(Stack {
            frames: ranges.into_iter().enumerate().map(merge).collect(),
            lowest,
        })
    }

    /// Every object, by frame and address.
    pub fn objects(&self) -> impl Iterator<Item = &StackObject> {
        self.frames.iter().flatten()
    }

    /// The object that a place is counted from: the one that holds this byte. One past an object's end belongs to it
    /// if no other begins there; a place outside of all that the frame touches, to which a pointer may be moved, is
    /// counted from the nearest byte.
    pub fn find(&self, frame: FrameId, offset: i32) -> Option<&StackObject> {
        let objects = self.frames.get(frame.0)?;
        let inside = offset.clamp(*self.lowest.get(frame.0)?, 0);
        let holding = |at: i32| {
            let before = objects.partition_point(|o| o.from <= at).checked_sub(1)?;
            objects.get(before).filter(|o| at <= o.to)
        };
        holding(inside)
    }
}

/// The stack bytes that a step touches at places that are the same in all executions.
pub fn touched(slice: &Slice, id: StepId) -> Vec<StackObject> {
    let step = slice.step(id);
    if matches!(slice.role(id), Role::Absent | Role::Stop | Role::Pass) {
        return Vec::new();
    }
    let mut found = Vec::new();
    let mut add = |access: Access| {
        if let Access::Stack { frame, from, to } = access {
            found.push(StackObject { frame, from, to });
        }
    };
    let Op::Plain(insn) = step.op else {
        return found;
    };
    match insn {
        Insn::Load {
            base, offset, size, ..
        }
        | Insn::Store {
            base, offset, size, ..
        }
        | Insn::Atomic {
            base, offset, size, ..
        } => match step.before[usize::from(base.0)] {
            Kind::Stack {
                frame,
                offset: Some(at),
            } => {
                let from = at.saturating_add(i32::from(offset));
                add(Access::Stack {
                    frame,
                    from,
                    to: from.saturating_add(size.bytes() as i32),
                });
            }
            _ => step.access.into_iter().for_each(add),
        },
        Insn::Call { .. } => {
            for arg in &step.args {
                if let ArgFact::Memory { access, .. } = arg {
                    add(*access);
                }
            }
        }
        _ => {}
    }
    found
}

/// The stack bytes whose addresses a step puts into locals or memory, or compares.
pub fn materialised(slice: &Slice, demand: &Demand, id: StepId) -> Vec<(FrameId, i32)> {
    let step = slice.step(id);
    let constant = |kind: Kind| match kind {
        Kind::Stack {
            frame,
            offset: Some(offset),
        } => Some((frame, offset)),
        _ => None,
    };
    let before = |reg: Reg| constant(step.before[usize::from(reg.0)]);
    let found = match step.op {
        Op::Plain(Insn::Store {
            src: Operand::Reg(src),
            ..
        }) => vec![before(src)],
        Op::Branch {
            insn: Insn::Branch { left, right, .. },
            ..
        } => match right {
            Operand::Reg(right) => vec![before(left), before(right)],
            Operand::Imm(_) => vec![before(left)],
        },
        Op::Enter { frame, target } => (1..=5)
            .map(Reg)
            .filter(|reg| demand.before(slice, target, frame, *reg).any())
            .map(before)
            .collect(),
        Op::Leave { .. } => vec![before(Reg(0))],
        Op::Plain(insn) => {
            let needed = |dst: &Reg| demand.after(slice, id, *dst).any();
            match (millrace_check::facts::written(&insn).filter(needed), insn) {
                (Some(_), _) if is_address(step.after) => vec![constant(step.after)],
                // What is moved from here, or related to a place that is not known in full.
                (Some(dst), Insn::Alu { op, src, .. }) if known_distance(step, &insn).is_none() => {
                    let left = before(dst).filter(|_| op != AluOp::Mov);
                    let right = match src {
                        Operand::Reg(src) => before(src),
                        Operand::Imm(_) => None,
                    };
                    vec![left, right]
                }
                _ => Vec::new(),
            }
        }
        _ => Vec::new(),
    };
    found.into_iter().flatten().collect()
}
