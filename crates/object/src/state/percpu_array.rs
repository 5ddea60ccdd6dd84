//! The kernel's per-CPU array. Every worker has an instance of its own, and in that it is an array.

use super::{Addressing, Holds, PLAIN, StateKind, call, elements, limits, look};
use crate::contract::Reach::Entry;
use crate::helper::MAP_LOOKUP_PERCPU_ELEM;
use crate::program::StateObject;

/// `BPF_MAP_TYPE_PERCPU_ARRAY`
pub static KIND: StateKind = StateKind {
    name: "percpu_array",
    c: "array",
    bpf_type: Some(6),
    addressing: Addressing::Index,
    holds: Holds::Values,
    per_cpu: true,
    calls: &[
        elements::CALLS,
        &[call(&MAP_LOOKUP_PERCPU_ELEM, look(Entry))],
    ],
    at_capacity: "is always full: an index beyond it is absent (null) and cannot be written (-E2BIG)",
    validate,
    bytes: elements::bytes,
    ..PLAIN
};

fn validate(object: &StateObject) -> Result<(), String> {
    limits::flags(object, elements::FLAGS)?;
    limits::index_key(object)?;
    elements::validate(object)
}
