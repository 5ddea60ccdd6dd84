//! Merge: every core has its own part, and readers outside see the sum of all, or the records of all.

use millrace_place::Treatment;

use super::{Contract, Subject};
use crate::rules::Answer;
use crate::rules::nothing::Sum;

pub(super) const CONTRACT: Contract = Contract {
    treatment: Treatment::Merge,
    bar,
    reason,
};

fn bar(of: &Subject<'_>) -> Option<String> {
    let kind = of.declared.kind;
    match of.answer {
        Answer::Additive(..) if kind.merging().is_some() => None,
        Answer::Additive(..) => Some(format!("several of {} cannot be read as one", kind.name)),
        _ => Some("packets do not only add to it".to_owned()),
    }
}

fn reason(of: &Subject<'_>) -> String {
    let own = of.answer.reason();
    let Answer::Additive(sum, _) = of.answer else {
        return own.to_owned();
    };
    let parts = match sum {
        Sum::Numbers => {
            ": every core adds to its own part, and who reads it from outside sees the sum"
        }
        Sum::Entries => {
            ": every core has its own entries, and who reads them from outside sees the sums"
        }
        Sum::Records => ": every core has its own, and who reads sees those of all",
        Sum::Stale => {
            ": every core adds to its own part, and reads those of the others as they were within that time"
        }
        Sum::PerCpu => "; numbers that packets only add to are summed",
    };
    format!("{own}{parts}")
}
