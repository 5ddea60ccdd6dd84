//! `map_lookup_elem`: the value of a key, or null.
//!
//! `void *bpf_map_lookup_elem(map, key)`. Arrays: null beyond the last element. Tries: the value of the
//! longest prefix that matches. LRU maps: the entry counts as used. Maps of maps: the map that is there, to
//! be used as an object in later calls.

use super::{Arg, Effects, Helper, Return};

/// kernel helper 1
pub static HELPER: Helper = Helper {
    number: 1,
    name: "map_lookup_elem",
    args: &[Arg::Object, Arg::Key],
    returns: Return::ValueOrNull,
    kinds: &[
        "hash",
        "lru_hash",
        "array",
        "percpu_array",
        "percpu_hash",
        "lru_percpu_hash",
        "lpm_trie",
        "devmap",
        "devmap_hash",
        "xskmap",
        "array_of_maps",
        "hash_of_maps",
    ],
    effects: Effects {
        state: true,
        ..Effects::NONE
    },
};
