//! Shard: every core has the entries of its own packets, and the steering brings packets that touch one entry together.

use millrace_object::program::StateObject;
use millrace_place::Treatment;

use super::{Contract, Subject};
use crate::rules::Answer;

pub(super) const CONTRACT: Contract = Contract {
    treatment: Treatment::Shard,
    bar,
    reason: |of| of.answer.reason().to_owned(),
};

/// Whether an object can be divided among cores that each have the part of their own packets.
pub(crate) fn divides(declared: &StateObject) -> bool {
    declared.kind.division().is_some() && declared.timer.is_none()
}

fn bar(of: &Subject<'_>) -> Option<String> {
    match of.answer {
        Answer::By(..) if divides(of.declared) => None,
        Answer::By(..) => Some(format!("{} is not divided", of.declared.kind.name)),
        Answer::Apart(_) | Answer::Additive(..) => {
            Some("nothing that touches it has to meet".to_owned())
        }
        Answer::Not(barred) => Some(barred.said.reason.clone()),
    }
}
