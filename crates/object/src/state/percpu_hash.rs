//! The kernel's per-CPU hash map. Every worker has an instance of its own, and in that it is a hash
//! map.

use super::{StateKind, call, hash, keyed, look};
use crate::contract::Reach::Bucket;
use crate::helper::MAP_LOOKUP_PERCPU_ELEM;

/// `BPF_MAP_TYPE_PERCPU_HASH`
pub static KIND: StateKind = StateKind {
    name: "percpu_hash",
    bpf_type: Some(5),
    per_cpu: true,
    calls: &[keyed::CALLS, &[call(&MAP_LOOKUP_PERCPU_ELEM, look(Bucket))]],
    ..hash::KIND
};
