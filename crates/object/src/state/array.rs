//! The kernel's array: values by an index below the capacity, all there from the start, all zero.

use super::{Addressing, Holds, PLAIN, StateKind, elements, limits, timers};
use crate::program::StateObject;

/// `BPF_MAP_TYPE_ARRAY`
pub static KIND: StateKind = StateKind {
    name: "array",
    c: "array",
    bpf_type: Some(2),
    addressing: Addressing::Index,
    holds: Holds::Values,
    calls: &[elements::CALLS, timers::CALLS],
    at_capacity: "is always full: an index beyond it is absent (null) and cannot be written (-E2BIG)",
    validate,
    bytes: elements::bytes,
    ..PLAIN
};

fn validate(object: &StateObject) -> Result<(), String> {
    let inner = [elements::FLAGS, &[(1 << 12, "BPF_F_INNER_MAP")]].concat();
    limits::flags(object, &inner)?;
    limits::index_key(object)?;
    elements::validate(object)
}
