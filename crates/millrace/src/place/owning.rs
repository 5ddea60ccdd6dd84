//! Which worker has an entry that is set from outside, as a plan tells.

use std::collections::BTreeSet;
use std::sync::Arc;

use millrace_model::Model;
use millrace_object::program::{ObjectId, Role};
use millrace_place::Owning;
use millrace_plan::{Finder, Plan};
use millrace_steer::Steering;

/// What keys tell, under a steering.
pub(super) struct Told {
    finder: Finder,
    /// objects that `ON_START` works on
    started: BTreeSet<usize>,
}

impl Told {
    /// Of a plan and the steering that it was drawn to.
    pub fn of(plan: &Plan, model: &Model, steering: &[Steering]) -> Arc<dyn Owning> {
        let starts = model.entries.iter().filter(|e| e.role == Role::OnStart);
        let paths = starts.flat_map(|e| &e.paths);
        let accesses = paths.flat_map(|p| &p.accesses);
        Arc::new(Self {
            finder: plan.finder(steering),
            started: accesses.map(|a| a.object.0).collect(),
        })
    }
}

impl Owning for Told {
    fn owner(&self, object: usize, key: &[u8]) -> Option<u32> {
        let lies = self.finder.lies(ObjectId(object), key)?;
        Some(lies.worker)
    }

    fn begins(&self, object: usize) -> bool {
        !self.started.contains(&object)
    }
}
