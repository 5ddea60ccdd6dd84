//! From a plan to what is dealt out.

use millrace_object::program::{ObjectId, Program};
use millrace_object::state::Addressing;
use millrace_plan::{Plan, Strategy, Treatment};

use crate::deal::Held;

/// How each object of the program is held under a plan.
///
/// # Errors
/// The objects that the plan has locked: what the workers that share them may do depends on the order of their
/// commits, of which no recording is there.
pub fn held(plan: &Plan, program: &Program) -> Result<Vec<Held>, Vec<String>> {
    if plan.strategy == Strategy::Alone {
        return Ok(program.objects.iter().map(|_| Held::Alone).collect());
    }
    let mut locked = Vec::new();
    let objects = program.objects.iter().enumerate();
    let held = objects.map(|(i, object)| {
        let per_cpu = object.kind.name.contains("percpu");
        let records = matches!(object.kind.name, "ringbuf" | "perf_event_array");
        let fixed = object.kind.host_only() || object.kind.holds_maps() || object.read_only;
        match plan.treatment(ObjectId(i)) {
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
            Treatment::Lock => {
                locked.push(object.name.clone());
                Held::Divided
            }
        }
    });
    let held = held.collect();
    if locked.is_empty() {
        Ok(held)
    } else {
        Err(locked)
    }
}
