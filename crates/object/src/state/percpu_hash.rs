//! The kernel's per-CPU hash map. Every worker has an instance of its own, and in that it is a hash
//! map.

use super::{Addressing, StateKind, keyed, limits};
use crate::program::StateObject;

/// `BPF_MAP_TYPE_PERCPU_HASH`
pub static KIND: StateKind = StateKind {
    name: "percpu_hash",
    c: "hash",
    bpf_type: Some(5),
    handler_kind: None,
    addressing: Addressing::Key,
    hashed: true,
    at_capacity: "a new key is refused with -E2BIG; present ones can be overwritten",
    validate,
    bytes: keyed::bytes,
};

fn validate(object: &StateObject) -> Result<(), String> {
    limits::flags(object, keyed::FLAGS)?;
    keyed::validate(object)
}
