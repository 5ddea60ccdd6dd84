//! Maps of maps. Two keys may have the same map, so a map that was found is the number that says which it is,
//! and the entries in it have that number before their keys.

use super::{Address, Answer, Meaning};
use crate::model::Effect;

/// The kernel's maps of maps.
pub const KINDS: (&[&str], &[Meaning]) = (
    &["array_of_maps", "hash_of_maps"],
    &[Meaning {
        helper: "map_lookup_elem",
        effect: Effect::Read,
        address: Address::Key,
        answer: Answer::Map,
    }],
);
