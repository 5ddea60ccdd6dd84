//! Members of `DISTRIBUTED`: each is named by a constant, and changed by one operator in the whole program, so that parts of
//! it can be merged.

use millrace_object::helper::{
    DISTRIBUTED_ADD, DISTRIBUTED_MAX, DISTRIBUTED_OR, DISTRIBUTED_READ, Helper,
};
use millrace_object::insn::Insn;
use millrace_object::program::{ObjectId, Program, StateObject};

use crate::facts::{ArgFact, Checked, Flow, Op, Refusal, StepId};
use crate::refuse::{Fault, refusal};
use crate::rule::Rule;

/// Operators by which the members of an object change, a bit a member: those in neither are added to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Operators {
    /// the largest number counts
    pub max: u64,
    /// bits are set
    pub or: u64,
}

/// Operators of an object's members, by the calls that can happen.
#[must_use]
pub fn operators(program: &Program, checked: &Checked, object: ObjectId) -> Operators {
    let mut found = Operators::default();
    for running in checked.running(program) {
        for (_, helper, of, member) in changes(running.flow) {
            if of != object {
                continue;
            }
            if helper == &DISTRIBUTED_MAX {
                found.max |= bit(member);
            } else if helper == &DISTRIBUTED_OR {
                found.or |= bit(member);
            }
        }
    }
    found
}

fn bit(member: u64) -> u64 {
    1_u64.checked_shl(member as u32).unwrap_or(0)
}

/// Whether a helper works on a member.
pub(crate) fn takes(helper: &Helper) -> bool {
    let all = [
        &DISTRIBUTED_ADD,
        &DISTRIBUTED_MAX,
        &DISTRIBUTED_OR,
        &DISTRIBUTED_READ,
    ];
    all.contains(&helper)
}

/// The member that a call names, or what is wrong with it.
pub(crate) fn named(object: &StateObject, member: Option<u64>) -> Result<u64, &'static str> {
    let members = u64::from(object.value_bytes / 8);
    let member = member.ok_or("is not a constant")?;
    match member < members {
        true => Ok(member),
        false => Err("is no member"),
    }
}

/// Calls that change a member.
fn changes(flow: &Flow) -> impl Iterator<Item = (StepId, &'static Helper, ObjectId, u64)> + '_ {
    flow.steps.iter().enumerate().filter_map(|(at, step)| {
        let Op::Plain(Insn::Call { helper }) = step.op else {
            return None;
        };
        let all = [&DISTRIBUTED_ADD, &DISTRIBUTED_MAX, &DISTRIBUTED_OR];
        let helper = all.into_iter().find(|h| h.number == helper)?;
        match step.args.as_slice() {
            [ArgFact::Object(object), ArgFact::Scalar(Some(member)), ..] if step.reached => {
                Some((StepId(at), helper, *object, *member))
            }
            _ => None,
        }
    })
}

/// Refuses a member that two operators change.
///
/// # Errors
/// `helper-argument`, at the second one.
pub(crate) fn agree(program: &Program, checked: &Checked) -> Result<(), Box<Refusal>> {
    let mut known: Vec<(ObjectId, u64, &'static Helper)> = Vec::new();
    for running in checked.running(program) {
        for (step, helper, object, member) in changes(running.flow) {
            let before = known.iter().find(|k| (k.0, k.1) == (object, member));
            let Some((.., other)) = before else {
                known.push((object, member, helper));
                continue;
            };
            if *other == helper {
                continue;
            }
            let name = program.objects.get(object.0).map_or("", |o| &o.name);
            let fault = Fault::new(
                Rule::HelperArgument,
                format!(
                    "member {member} of `{name}` is changed by `{}` here and by `{}` elsewhere",
                    helper.name, other.name
                ),
                "Use one operator for a member: parts of it could not be merged otherwise.",
            );
            return Err(refusal(program, running.flow, step, fault));
        }
    }
    Ok(())
}
