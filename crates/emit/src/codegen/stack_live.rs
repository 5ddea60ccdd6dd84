//! Liveness of stack objects: which may be read from a step on before they are written anew or their frame is left.

use std::collections::BTreeSet;

use millrace_check::facts::{Op, StepId};
use millrace_object::insn::Insn;

use super::resume::anywhere;
use super::slice::Slice;
use super::stack::{StackObject, touched};

/// The result for some objects.
pub struct StackLive {
    objects: Vec<StackObject>,
    /// by step: the objects that are live before it, by number
    before: Vec<BTreeSet<usize>>,
}

impl StackLive {
    /// Solves the backward equations over a slice by a work list.
    pub fn solve(slice: &Slice, objects: &[StackObject]) -> Self {
        let order = slice.layout();
        let steps = slice.flow.steps.len();
        let mut leads = vec![Vec::new(); steps];
        for &id in &order {
            for next in slice.successors(id) {
                leads[next.0].push(id);
            }
        }
        let mut live = Self {
            objects: objects.to_vec(),
            before: vec![BTreeSet::new(); steps],
        };
        let mut queued = vec![true; steps];
        let mut work = order;
        while let Some(id) = work.pop() {
            queued[id.0] = false;
            let before = live.transfer(slice, id);
            if live.before[id.0] == before {
                continue;
            }
            live.before[id.0] = before;
            for &lead in &leads[id.0] {
                if !std::mem::replace(&mut queued[lead.0], true) {
                    work.push(lead);
                }
            }
        }
        live
    }

    /// Whether an object may be read from a step on.
    pub fn before(&self, id: StepId, object: &StackObject) -> bool {
        let number = self.objects.iter().position(|o| o == object);
        number.is_none_or(|n| self.before[id.0].contains(&n))
    }

    fn transfer(&self, slice: &Slice, id: StepId) -> BTreeSet<usize> {
        let step = slice.step(id);
        let next = slice.successors(id);
        let mut live: BTreeSet<usize> = next
            .iter()
            .flat_map(|next| self.before[next.0].iter().copied())
            .collect();
        let ended = match step.op {
            Op::Enter { frame, .. } => Some(frame),
            Op::Leave { .. } => Some(step.frame),
            _ => None,
        };
        live.retain(|n| ended != Some(self.objects[*n].frame));
        let stored = match step.op {
            Op::Plain(Insn::Store { size, .. }) => Some(size.bytes() as i32),
            _ => None,
        };
        for bytes in touched(slice, id) {
            for (number, object) in self.objects.iter().enumerate() {
                let meets =
                    object.frame == bytes.frame && object.from < bytes.to && bytes.from < object.to;
                let whole = bytes.from <= object.from && object.to <= bytes.to;
                match stored {
                    _ if !meets => {}
                    None => drop(live.insert(number)),
                    // Where it stores differs between executions.
                    Some(size) if bytes.to - bytes.from != size => {}
                    Some(_) if whole => drop(live.remove(&number)),
                    Some(_) => {}
                }
            }
        }
        if anywhere(slice, id) {
            live.extend(0..self.objects.len());
        }
        live
    }
}
