//! The kernel's per-CPU array. Every worker has an instance of its own, and in that it is an array.

use super::{Addressing, StateKind, elements, limits};
use crate::program::StateObject;

/// `BPF_MAP_TYPE_PERCPU_ARRAY`
pub static KIND: StateKind = StateKind {
    name: "percpu_array",
    c: "array",
    bpf_type: Some(6),
    handler_kind: None,
    addressing: Addressing::Index,
    hashed: false,
    at_capacity: "is always full: an index beyond it is absent (null) and cannot be written (-E2BIG)",
    validate,
    bytes: elements::bytes,
};

fn validate(object: &StateObject) -> Result<(), String> {
    limits::flags(object, elements::FLAGS)?;
    limits::index_key(object)?;
    elements::validate(object)
}
