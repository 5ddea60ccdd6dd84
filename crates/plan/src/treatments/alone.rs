//! Alone: one core runs everything that touches it, which is always possible.

use millrace_place::Treatment;

use super::{Contract, Subject, lock};
use crate::rules::Bar;

pub(super) const CONTRACT: Contract = Contract {
    treatment: Treatment::Alone,
    bar: |_| None,
    reason,
};

/// Why it is not locked, and why nothing separates its packets.
fn reason(of: &Subject<'_>) -> String {
    let own = of.answer.reason();
    match (lock::bar(of), of.answer.barred().map(|b| &b.by)) {
        (Some(bar), Some(Bar::Paths)) if of.declared.kind.holds_records() => {
            format!("{own}, and {bar}")
        }
        (Some(_), Some(Bar::Paths)) => format!(
            "{own}, so nothing says that what earlier packets of a CPU left there decides over none"
        ),
        (Some(bar), _) => format!("{bar}: {}", lock::reason(of)),
        (None, _) => own.to_owned(),
    }
}
