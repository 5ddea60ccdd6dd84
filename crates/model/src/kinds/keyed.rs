//! Entries by key. Two accesses are to one entry if their keys are equal. Refreshes of one entry commute;
//! a miss means that the key was never put, was deleted, or its age reached the limit.

use super::{Address, Answer, Meaning};
use crate::model::Effect;

const fn on_key(helper: &'static str, effect: Effect, answer: Answer) -> Meaning {
    Meaning {
        helper,
        effect,
        address: Address::Key,
        answer,
    }
}

/// A handler's map.
pub const KINDS: (&[&str], &[Meaning]) = (
    &["map"],
    &[
        on_key("map_get", Effect::Read, Answer::Value),
        on_key("map_refresh", Effect::Refresh, Answer::Value),
        on_key("map_put", Effect::Write, Answer::Stored),
        on_key("map_delete", Effect::Write, Answer::Removed),
    ],
);

/// The kernel's hash map.
pub const KERNEL: (&[&str], &[Meaning]) = (
    &["hash", "percpu_hash"],
    &[
        on_key("map_lookup_elem", Effect::Read, Answer::Value),
        on_key("map_update_elem", Effect::Write, Answer::Status),
        on_key("map_delete_elem", Effect::Write, Answer::Deleted),
    ],
);

/// The same with eviction: looking counts as use.
pub const LRU: (&[&str], &[Meaning]) = (
    &["lru_hash", "lru_percpu_hash"],
    &[
        on_key("map_lookup_elem", Effect::Refresh, Answer::Value),
        on_key("map_update_elem", Effect::Write, Answer::Status),
        on_key("map_delete_elem", Effect::Write, Answer::Deleted),
    ],
);
