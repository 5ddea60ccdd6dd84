//! `map_push_elem`: puts a value in.
//!
//! `long bpf_map_push_elem(map, value, flags)`; flags are `BPF_ANY` 0 and, not for Bloom filters,
//! `BPF_EXIST` 2: if there is no room the oldest value gives way. Returns 0, `-EINVAL` for other flags, or
//! `-E2BIG`: full.

use super::{Arg, Effects, Helper, Return};

/// kernel helper 87
pub static HELPER: Helper = Helper {
    number: 87,
    name: "map_push_elem",
    args: &[Arg::Object, Arg::Value, Arg::Scalar],
    returns: Return::Scalar { min: -4095, max: 0 },
    kinds: &["queue", "stack", "bloom_filter"],
    effects: Effects {
        state: true,
        ..Effects::NONE
    },
};
