//! From a plan to what is dealt out.

use std::collections::BTreeSet;

use millrace_object::program::{ObjectId, Program};
use millrace_object::state::Addressing;
use millrace_plan::{Plan, Strategy, Treatment};

use crate::deal::Held;

/// How each object of the program is held under a plan; those that are `shared` are one for all workers: what the
/// plan locks, and what has to go with it.
#[must_use]
pub fn held(plan: &Plan, program: &Program, shared: &BTreeSet<ObjectId>) -> Vec<Held> {
    if plan.strategy == Strategy::Alone {
        return program.objects.iter().map(|_| Held::Alone).collect();
    }
    let objects = program.objects.iter().enumerate();
    let held = objects.map(|(i, object)| {
        let per_cpu = object.kind.name.contains("percpu");
        let records = matches!(object.kind.name, "ringbuf" | "perf_event_array");
        let fixed = object.kind.host_only() || object.kind.holds_maps() || object.read_only;
        match plan.treatment(ObjectId(i)) {
            _ if records && shared.contains(&ObjectId(i)) => Held::Private(
                "whose packet left a record is not told by a buffer that workers share".into(),
            ),
            _ if shared.contains(&ObjectId(i)) => Held::Shared,
            _ if records => Held::Private("its records are compared packet by packet".into()),
            Treatment::Merge if object.kind.addressing == Addressing::None => {
                Held::Private("what it holds has no keys".into())
            }
            Treatment::Merge => Held::Merged,
            _ if per_cpu => Held::Private("each CPU has values of its own".into()),
            // The plan speaks of state; constants and what only the host sets are the same everywhere.
            _ if fixed || !plan.objects.iter().any(|o| o.id.0 == i) => Held::Replicated,
            Treatment::Spread => Held::Replicated,
            Treatment::Shard => Held::Divided,
            Treatment::Alone => Held::Alone,
            Treatment::Lock => Held::Shared,
        }
    });
    held.collect()
}
