//! Replicate: every core has all of it, and repeats what packets of the others do to it (R7).

use millrace_place::Treatment;

use super::{Contract, Subject};

pub(super) const CONTRACT: Contract = Contract {
    treatment: Treatment::Replicate,
    bar: |of: &Subject<'_>| of.unreplicated.clone(),
    reason: |of| of.answer.reason().to_owned(),
};
