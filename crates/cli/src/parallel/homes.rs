//! Allocators whose numbers come home: what the plan says of them, as modules and workers need it.

use std::sync::Arc;

use millrace_dataplane::module::Homes;
use millrace_object::program::Program;
use millrace_plan::Plan;
use millrace_steer::Steering;

/// Settings that a module is built with, and given when it starts.
#[derive(Clone, Debug)]
pub struct ComingHome {
    /// the allocators, and over how many indexes of the indirection table their numbers are told apart
    pub names: Vec<(String, u32)>,
    /// what its instances are told
    pub homes: Arc<Homes>,
}

impl ComingHome {
    /// As a plan says, with this steering of its ports; none where no numbers come home.
    pub fn of(plan: &Plan, program: &Program, steering: &[Steering]) -> Option<Self> {
        let indexes = plan.homes.first()?.indexes;
        let names = plan.homes.iter().map(|h| (h.object.clone(), h.indexes));
        let mut tables = vec![None; program.objects.len()];
        for (object, table) in plan.home_tables(steering) {
            if let Some(place) = tables.get_mut(object.0) {
                *place = Some(table);
            }
        }
        let owners = steering.iter().map(Steering::owners).collect();
        Some(Self {
            names: names.collect(),
            homes: Arc::new(Homes::new(owners, indexes, tables)),
        })
    }
}
