//! `map_update_elem`: adds or overwrites an entry.
//!
//! `long bpf_map_update_elem(map, key, value, flags)`; flags are `BPF_ANY` 0, `BPF_NOEXIST` 1,
//! `BPF_EXIST` 2. Returns 0 or
//!
//! - `-EINVAL`: unknown flags, or a prefix longer than the key;
//! - `-EEXIST`: `BPF_NOEXIST`, and the key is there (always, in arrays);
//! - `-ENOENT`: `BPF_EXIST`, and it is not;
//! - `-E2BIG`: full, or beyond the last element of an array;
//! - `-ENOSPC`: full, tries.

use super::{Arg, Effects, Helper, Return};

/// kernel helper 2
pub static HELPER: Helper = Helper {
    number: 2,
    name: "map_update_elem",
    args: &[Arg::Object, Arg::Key, Arg::Value, Arg::Scalar],
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
