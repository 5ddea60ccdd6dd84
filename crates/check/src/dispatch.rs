//! Calls that work on one state object on some ways and on another on others: compilers make one call of
//! two in different branches, with the object in a register.
//!
//! Such a call becomes one call for each object behind comparisons of the register, so that every call
//! of a flow names its object and the later stages know keys, values and results by it:
//!
//! ```text
//! at:     goto first
//!         …
//! first:  r0 = object a
//!         if r1 == r0 goto on_a
//!         r0 = object b
//!         if r1 == r0 goto on_b
//!         call                        a map that was found in another one, or not reached
//!         goto at + 1
//! on_a:   r1 = object a
//!         call
//!         goto at + 1
//! on_b:   …
//! ```
//!
//! `r0` is free: the call overwrites it and takes no argument there. The list of objects need not be
//! complete: the flow means the same whatever it holds, and is explored again.
//!
//! A map that was found in another one has no address that could be listed. It is what remains when the
//! register holds none of the declared ones', so that the call behind the comparisons is one on such maps:
//! at most one shape may remain there (`part` handles more).

use millrace_object::helper::{self, Helper};
use millrace_object::insn::{Condition, Insn, Operand, Reg};
use millrace_object::program::{ObjectId, Program};

use crate::facts::{Flow, Op, Step, StepId};
use crate::refuse::{Fault, Verdict};
use crate::rule::Rule;

/// What remains refused.
#[must_use]
pub fn fault() -> Fault {
    Fault::new(
        Rule::SeveralObjects,
        "this call works on one state object in some executions and on another in others, and their addresses do not tell which",
        "Write one call for each, inside the branch that chooses it.",
    )
}

/// Those of these objects that an address names, as it does not those that were found in others; none if
/// more than one shape of the latter would remain.
#[must_use]
pub fn named(program: &Program, objects: &[ObjectId]) -> Option<Vec<ObjectId>> {
    let named = |o: &&ObjectId| program.objects.get(o.0).is_some_and(|o| !o.is_shape());
    let named: Vec<ObjectId> = objects.iter().filter(named).copied().collect();
    (objects.len() <= named.len() + 1).then_some(named)
}

/// Whether a branch is one of those comparisons: an author's has no call in its place.
#[must_use]
pub fn compares(program: &Program, flow: &Flow, step: &Step) -> bool {
    let function = flow.frames.get(step.frame.0).map(|f| f.function);
    let insn = function
        .and_then(|f| program.functions.get(f.0))
        .and_then(|f| f.insns.get(step.pc));
    matches!(
        step.op,
        Op::Branch {
            insn: Insn::Branch {
                right: Operand::Reg(Reg(0)),
                ..
            },
            ..
        }
    ) && matches!(insn, Some(Insn::Call { .. }))
}

fn load(dst: Reg, object: ObjectId) -> Op {
    Op::Plain(Insn::object(dst, object))
}

/// Goes to a step if a register holds an object; overwrites `r0`.
#[must_use]
pub fn if_object(register: Reg, object: ObjectId, target: StepId) -> [Op; 2] {
    let compared = Op::Branch {
        insn: Insn::branch(Condition::Eq, register, Operand::Reg(Reg(0)), 0),
        target,
    };
    [load(Reg(0), object), compared]
}

/// Lays out the call at a step once for each of these objects. The steps that there are keep their
/// places. The objects are [`named`].
///
/// # Errors
/// `too-large`, and `several-objects` if the step is no call on an object.
pub fn split(flow: &mut Flow, at: StepId, objects: &[ObjectId], limit: usize) -> Verdict<()> {
    let Some(step) = flow.steps.get(at.0) else {
        return Err(fault());
    };
    let (frame, pc, line) = (step.frame, step.pc, step.line.clone());
    let position = match step.op {
        Op::Plain(Insn::Call { helper }) => {
            helper::by_number(helper).and_then(Helper::object_argument)
        }
        _ => None,
    };
    let register = position.and_then(|p| u8::try_from(p + 1).ok()).map(Reg);
    let Some(register) = register else {
        return Err(fault());
    };
    let call = step.op;
    let first = flow.steps.len();
    // Two steps of comparison and three of call for each, two for the rest.
    let calls = first + 2 * objects.len() + 2;
    if calls + 3 * objects.len() > limit {
        return Err(Fault::new(
            Rule::TooLarge,
            format!(
                "with every call expanded, and one for each state object that it may work on, the program has more than {limit} instructions"
            ),
            "Call the function from fewer places, or make it smaller.",
        ));
    }
    let back = Op::Jump {
        target: StepId(at.0 + 1),
    };
    let mut ops = Vec::new();
    for (i, &object) in objects.iter().enumerate() {
        ops.extend(if_object(register, object, StepId(calls + 3 * i)));
    }
    ops.extend([call, back]);
    for &object in objects {
        ops.extend([load(register, object), call, back]);
    }
    let steps = ops
        .into_iter()
        .map(|op| Step::blank(frame, pc, op, line.clone()));
    flow.steps.extend(steps);
    if let Some(step) = flow.steps.get_mut(at.0) {
        step.op = Op::Jump {
            target: StepId(first),
        };
    }
    Ok(())
}
