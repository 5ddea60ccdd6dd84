//! The kernel's per-CPU LRU hash map. Every worker has an instance of its own, and in that it is an
//! LRU hash map.

use super::{Addressing, StateKind, keyed, limits};
use crate::program::StateObject;

/// `BPF_MAP_TYPE_LRU_PERCPU_HASH`
pub static KIND: StateKind = StateKind {
    name: "lru_percpu_hash",
    c: "lru_hash",
    bpf_type: Some(10),
    handler_kind: None,
    addressing: Addressing::Key,
    hashed: true,
    at_capacity: "an entry that was not used lately is evicted",
    validate,
    bytes: keyed::lru_bytes,
};

fn validate(object: &StateObject) -> Result<(), String> {
    limits::flags(object, keyed::LRU_FLAGS)?;
    keyed::validate(object)
}
