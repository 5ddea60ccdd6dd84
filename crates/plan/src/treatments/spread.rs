//! Spread: every core has a copy, or one of its own, and any packet goes anywhere.

use millrace_place::Treatment;

use super::{Contract, Subject};
use crate::rules::Answer;
use crate::rules::nothing::Apart;

pub(super) const CONTRACT: Contract = Contract {
    treatment: Treatment::Spread,
    bar,
    reason,
};

fn bar(of: &Subject<'_>) -> Option<String> {
    let apart = matches!(of.answer, Answer::Apart(_));
    (!apart).then(|| "packets leave in it what others find".to_owned())
}

fn reason(of: &Subject<'_>) -> String {
    let own = of.answer.reason();
    match of.answer {
        Answer::Apart(Apart::ReadOnly | Apart::WrittenAtStart) => {
            format!("{own}: every core has a copy")
        }
        _ => own.to_owned(),
    }
}
