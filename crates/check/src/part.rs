//! Parts calls that a compiler joined: where two branches choose a state object each and then go the same
//! way to one call, every branch gets a copy of the way and of the call.
//!
//! A call's object must be known, because what it may be given and what code it is follow from the
//! object's kind. Compilers join the tails of branches, calls and all ("cross-jumping": Muchnick, Advanced
//! Compiler Design and Implementation, section 18.8), where the author wrote one call for each. The copy
//! undoes that, and costs no time when the program runs.

use crate::facts::{Flow, FrameId, Op, Step, StepId};

/// Most calls of one entry that are parted; the steps copied are then at most so many times the
/// longest run of steps without a jump.
pub const MOST: usize = 64;

/// The most steps of a copy.
const LONGEST: usize = 256;

fn target(op: Op) -> Option<StepId> {
    match op {
        Op::Jump { target }
        | Op::Branch { target, .. }
        | Op::Enter { target, .. }
        | Op::Leave { target } => Some(target),
        Op::Plain(_) | Op::Exit => None,
    }
}

/// Gives one of the ways to this call a copy of its own; false if there is only one, or the ways meet
/// so far before the call that copying them would not be worth it.
pub fn part(flow: &mut Flow, call: StepId) -> bool {
    let at = |i: usize| flow.steps.get(i).map(|s| s.op);
    let Some(frame) = flow.steps.get(call.0).map(|s| s.frame) else {
        return false;
    };
    // What a helper call is expanded to has a shape that others rely on.
    let expanded = |f: FrameId| flow.frames.get(f.0).is_none_or(|f| f.expansion.is_some());
    if expanded(frame) || !matches!(at(call.0), Some(Op::Plain(_))) {
        return false;
    }
    // Back to the step where ways meet: all between it and the call is one run of plain steps.
    let mut from = call.0;
    let mut ways: Vec<usize> = Vec::new();
    loop {
        ways.extend(
            (flow.steps.iter().enumerate())
                .filter(|(_, s)| target(s.op) == Some(StepId(from)))
                .map(|(i, _)| i),
        );
        let falls = from > 0 && matches!(at(from - 1), Some(Op::Plain(_) | Op::Branch { .. }));
        if !ways.is_empty() || !falls || call.0 - from >= LONGEST {
            break;
        }
        if !matches!(at(from - 1), Some(Op::Plain(_))) {
            return false;
        }
        from -= 1;
    }
    let falls = from > 0 && matches!(at(from - 1), Some(Op::Plain(_) | Op::Branch { .. }));
    if ways.len() + usize::from(falls) < 2 {
        return false;
    }
    // A way back to the head of a loop stays: the loop keeps one head.
    let parted = ways.into_iter().find(|&way| {
        let forward = way < from;
        let jumps = matches!(at(way), Some(Op::Jump { .. } | Op::Branch { .. }));
        forward && jumps && flow.steps.get(way).is_some_and(|s| s.frame == frame)
    });
    let (Some(way), Some(run)) = (parted, flow.steps.get(from..=call.0)) else {
        return false;
    };
    let mut copy: Vec<Step> = run.to_vec();
    if let Some(last) = copy.last().cloned() {
        let target = StepId(call.0 + 1);
        copy.push(Step {
            op: Op::Jump { target },
            ..last
        });
    }
    let start = StepId(flow.steps.len());
    flow.steps.extend(copy);
    match flow.steps.get_mut(way).map(|s| &mut s.op) {
        Some(Op::Jump { target } | Op::Branch { target, .. }) => *target = start,
        _ => return false,
    }
    true
}
