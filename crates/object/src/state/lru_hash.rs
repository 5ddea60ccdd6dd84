//! The kernel's LRU hash map: an entry that was not used lately makes room for a new one.

use super::{Addressing, Holds, PLAIN, StateKind, keyed, limits, timers};
use crate::program::StateObject;

/// `BPF_MAP_TYPE_LRU_HASH`
pub static KIND: StateKind = StateKind {
    name: "lru_hash",
    c: "lru_hash",
    bpf_type: Some(9),
    addressing: Addressing::Key,
    holds: Holds::Values,
    evicts: true,
    hashed: true,
    calls: &[keyed::LRU_CALLS, timers::CALLS],
    at_capacity: "an entry that was not used lately is evicted",
    validate,
    bytes: keyed::lru_bytes,
    ..PLAIN
};

fn validate(object: &StateObject) -> Result<(), String> {
    limits::flags(object, keyed::LRU_FLAGS)?;
    keyed::validate(object)
}
