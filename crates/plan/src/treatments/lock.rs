//! Lock: one copy for all cores, under per-core read/write locks.

use millrace_place::Treatment;

use super::{Contract, Subject};
use crate::rules::Bar;

pub(super) const CONTRACT: Contract = Contract {
    treatment: Treatment::Lock,
    bar,
    reason,
};

/// An author who chose a per-CPU kind wants no values that CPUs share.
pub(super) fn bar(of: &Subject<'_>) -> Option<String> {
    of.declared.kind.per_cpu.then(|| {
        format!(
            "what a packet finds in {} is what earlier packets of its CPU left there, so the result depends on which CPU \
             runs which packet",
            of.declared.name
        )
    })
}

pub(super) fn reason(of: &Subject<'_>) -> String {
    let own = of.answer.reason();
    match of.answer.barred().map(|b| &b.by) {
        Some(Bar::Paths) => format!("{own}, so nothing is said of its keys and it is locked"),
        Some(Bar::Others(others)) => format!("{own}; it is locked, and {others} sharded"),
        Some(Bar::Keys) | None => own.to_owned(),
    }
}
