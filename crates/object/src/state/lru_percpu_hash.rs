//! The kernel's per-CPU LRU hash map. Every worker has an instance of its own, and in that it is an
//! LRU hash map.

use super::{StateKind, call, keyed, lru_hash, touch};
use crate::contract::Reach::Bucket;
use crate::helper::MAP_LOOKUP_PERCPU_ELEM;

/// `BPF_MAP_TYPE_LRU_PERCPU_HASH`
pub static KIND: StateKind = StateKind {
    name: "lru_percpu_hash",
    bpf_type: Some(10),
    per_cpu: true,
    calls: &[
        keyed::LRU_CALLS,
        &[call(&MAP_LOOKUP_PERCPU_ELEM, touch(Bucket))],
    ],
    ..lru_hash::KIND
};
