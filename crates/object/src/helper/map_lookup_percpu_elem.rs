//! `map_lookup_percpu_elem`: the value of a key on a given CPU, or null.
//!
//! `void *bpf_map_lookup_percpu_elem(map, key, u32 cpu)`. A worker has its own CPU's values only; for every
//! other number the result is null, as for a CPU that does not exist.

use super::{Arg, Effects, Helper, Return};

/// kernel helper 195
pub static HELPER: Helper = Helper {
    number: 195,
    name: "map_lookup_percpu_elem",
    args: &[Arg::Object, Arg::Key, Arg::Scalar],
    returns: Return::ValueOrNull,
    kinds: &["percpu_array", "percpu_hash", "lru_percpu_hash"],
    effects: Effects {
        state: true,
        ..Effects::NONE
    },
};
