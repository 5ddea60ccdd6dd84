//! Transact: one copy for all cores, of which packets of several cores write different entries at a time (docs/transact.md).

use millrace_model::Model;
use millrace_object::helper::MAP_SLOT;
use millrace_object::program::{ObjectId, Program};
use millrace_place::Treatment;

use super::{Contract, Subject, lock};

pub(super) const CONTRACT: Contract = Contract {
    treatment: Treatment::Transact,
    bar,
    reason: lock::reason,
};

/// Transactions take the places of entries from a pool of each core, so that a visit of all meets them in another order than
/// one core would, and the first that it meets is another one. Of other kinds packets change nothing beside each other, so that the lock does the same for less.
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
    let visited = || of.visited.then(|| visited(&of.declared.name));
    lock::bar(of).or_else(other).or_else(visited)
}

/// Why an object that packets visit is not written by transactions.
pub(super) fn visited(name: &str) -> String {
    format!(
        "packets visit all entries of {name}, in an order that depends on which core added which"
    )
}

/// Whether entries of a table are looked at place by place, as by `bpf_for_each_map_elem`; an array's places are its indices.
pub(crate) fn is_visited(model: &Model, program: &Program, object: ObjectId) -> bool {
    let declared = program.objects.get(object.0);
    if !declared.is_some_and(|o| o.kind.is_table()) {
        return false;
    }
    let mut paths = model.entries.iter().flat_map(|e| &e.paths);
    let mut most = model.entries.iter().flat_map(|e| &e.at_most);
    paths.any(|p| {
        let mut all = p.accesses.iter();
        all.any(|a| a.object == object && a.operation == MAP_SLOT.name)
    }) || most.any(|t| t.object == object && t.operation == MAP_SLOT.name)
}
