//! The kernel's hash map: each entry stays until it is deleted.

use super::{Addressing, Holds, PLAIN, StateKind, keyed, limits, timers};
use crate::program::StateObject;

/// `BPF_MAP_TYPE_HASH`
pub static KIND: StateKind = StateKind {
    name: "hash",
    c: "hash",
    bpf_type: Some(1),
    addressing: Addressing::Key,
    holds: Holds::Values,
    hashed: true,
    calls: &[keyed::CALLS, timers::CALLS],
    at_capacity: "a new key is refused with -E2BIG; present ones can be overwritten",
    validate,
    bytes: keyed::bytes,
    ..PLAIN
};

fn validate(object: &StateObject) -> Result<(), String> {
    limits::flags(object, keyed::FLAGS)?;
    keyed::validate(object)
}
