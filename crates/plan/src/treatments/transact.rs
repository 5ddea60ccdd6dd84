//! Transact: one copy for all cores, of which packets of several cores write different entries at a time (docs/transact.md).

use millrace_place::Treatment;

use super::{Contract, Subject, lock};

pub(super) const CONTRACT: Contract = Contract {
    treatment: Treatment::Transact,
    bar,
    reason: lock::reason,
};

/// Of other kinds packets change nothing beside each other, so that the lock does the same for less.
fn bar(of: &Subject<'_>) -> Option<String> {
    let other = || {
        let worded = of.declared.transacted_bytes(false).is_some();
        (!worded).then(|| {
            format!(
                "a packet that changes {}, {}, runs alone: entries of maps, vectors and allocators have version words",
                of.declared.name, of.declared.kind.name
            )
        })
    };
    lock::bar(of).or_else(other)
}
