//! Lock: one copy for all cores, under per-core read/write locks.

use millrace_place::Treatment;

use super::{Contract, Subject};
use crate::rules::Bar;

pub(super) const CONTRACT: Contract = Contract {
    treatment: Treatment::Lock,
    bar,
    reason,
};

/// An author who chose a per-CPU kind wants no values that CPUs share. How full a ring is depends on when its
/// records are taken, with several workers at other moments than with one, whatever order the lock gives their packets.
pub(super) fn bar(of: &Subject<'_>) -> Option<String> {
    if of.declared.kind.holds_records() && of.answer.barred().is_some() {
        return Some(format!(
            "what a packet is told of {} depends on when its records are taken, which no order of packets decides",
            of.declared.name
        ));
    }
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
