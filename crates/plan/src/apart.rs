//! Objects of which each core has one of its own whatever the treatment: what packets see of them.

use millrace_model::Model;
use millrace_model::model::Use;
use millrace_object::program::{ObjectId, StateObject};

use crate::rules::nothing;

/// Whether packets see more of an object for records than whether there was room: how far its writer is, for example. Then no core
/// may have one of its own.
#[must_use]
pub fn shows_records(model: &Model, id: ObjectId, declared: &StateObject) -> bool {
    let found = model.objects.get(id.0);
    declared.kind.holds_records()
        && found.is_some_and(|o| {
            o.usage == Use::ReadWrite && !nothing::only_records(model, o, declared.kind)
        })
}
