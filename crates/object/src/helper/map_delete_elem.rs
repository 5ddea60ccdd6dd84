//! `map_delete_elem`: removes an entry.
//!
//! `long bpf_map_delete_elem(map, key)`. Returns 0, `-ENOENT` if it was not there, `-EINVAL` for arrays,
//! whose elements cannot be removed.

use super::{Arg, Effects, Helper, Return};

/// kernel helper 3
pub static HELPER: Helper = Helper {
    number: 3,
    name: "map_delete_elem",
    args: &[Arg::Object, Arg::Key],
    returns: Return::Scalar { min: -4095, max: 0 },
    kinds: &[
        "hash",
        "lru_hash",
        "array",
        "percpu_array",
        "percpu_hash",
        "lru_percpu_hash",
        "lpm_trie",
    ],
    effects: Effects {
        state: true,
        ..Effects::NONE
    },
};
