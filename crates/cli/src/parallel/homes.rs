//! Allocators whose numbers come home: what the plan says of them, in a placement.

use millrace_place::Placement;
use millrace_plan::Plan;

/// Tells the placement which index of the indirection table each leased number belongs to, under its steering.
pub fn come_home(placement: &mut Placement, plan: &Plan) {
    let Some(first) = plan.homes.first() else {
        return;
    };
    placement.indexes = first.indexes;
    for (object, table) in plan.home_tables(&placement.steering) {
        if let Some(place) = placement.objects.get_mut(object.0) {
            place.home = Some(table);
        }
    }
}
