//! A handler's `DISTRIBUTED`: numbers that all packets add to, by members of a structure. Each member is changed by one of
//! three operators whose order does not show, so that parts of it can be merged.

use super::{Addressing, Call, Holds, PLAIN, StateKind, add, call, limits, look, memory};
use crate::contract::Reach::{Entry, Whole};
use crate::helper::{DISTRIBUTED_ADD, DISTRIBUTED_MAX, DISTRIBUTED_OR, DISTRIBUTED_READ};
use crate::program::StateObject;

/// Most members: `struct shape` has a bit for each.
const MAX_MEMBERS: u32 = 64;

/// `MILLRACE_DISTRIBUTED`
pub static KIND: StateKind = StateKind {
    name: "distributed",
    c: "distributed",
    handler_kind: Some(7),
    addressing: Addressing::Index,
    holds: Holds::Values,
    calls: &[CALLS],
    at_capacity: "is never full: its members are all there from the start",
    validate,
    bytes,
    ..PLAIN
};

/// A read takes all members, of all parts.
const CALLS: &[Call] = &[
    call(&DISTRIBUTED_ADD, add(Entry)),
    call(&DISTRIBUTED_MAX, add(Entry)),
    call(&DISTRIBUTED_OR, add(Entry)),
    call(&DISTRIBUTED_READ, look(Whole)),
];

fn validate(object: &StateObject) -> Result<(), String> {
    limits::options(object, &[])?;
    if object.capacity != 1 {
        return Err(format!("{} entries; it has one", object.capacity));
    }
    if object.value_bytes == 0 || !object.value_bytes.is_multiple_of(8) {
        return Err(format!(
            "{} bytes; each member is a __u64 of 8",
            object.value_bytes
        ));
    }
    if object.value_bytes / 8 > MAX_MEMBERS {
        return Err(format!(
            "{} members; at most {MAX_MEMBERS} are possible",
            object.value_bytes / 8
        ));
    }
    Ok(())
}

/// A core's own members, and those of the others together.
fn bytes(object: &StateObject) -> u64 {
    memory::mapped(2 * u64::from(object.value_bytes))
}
