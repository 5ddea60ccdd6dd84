//! A handler's `ALLOCATOR`: leases numbers, each with a value kept with it, until they expire or are
//! given back.

use super::{Addressing, Call, Holds, PLAIN, StateKind, call, limits, look, memory, touch, write};
use crate::contract::Reach::{Entry, Whole};
use crate::helper::{ALLOCATOR_FREE, ALLOCATOR_GET, ALLOCATOR_LEASE, ALLOCATOR_REFRESH};
use crate::program::StateObject;

/// `MILLRACE_ALLOCATOR`
pub static KIND: StateKind = StateKind {
    name: "allocator",
    c: "allocator",
    handler_kind: Some(3),
    addressing: Addressing::Lease,
    holds: Holds::Values,
    calls: &[CALLS],
    at_capacity: "no number is leased (-1)",
    validate,
    bytes,
    ..PLAIN
};

/// Free numbers are in one list.
const CALLS: &[Call] = &[
    call(&ALLOCATOR_LEASE, write(Whole)),
    call(&ALLOCATOR_GET, look(Entry)),
    call(&ALLOCATOR_REFRESH, touch(Entry)),
    call(&ALLOCATOR_FREE, write(Whole)),
];

fn validate(object: &StateObject) -> Result<(), String> {
    limits::options(object, &["expire_after", "first"])?;
    limits::value_or_none(object)?;
    limits::capacity(object)?;
    // A lease is a non-negative signed number, -1 is none.
    let last = object.first.checked_add(object.capacity - 1);
    if last.is_none_or(|last| last > i64::MAX as u64) {
        return Err(format!(
            "numbers from {} on, {} of them; the last must be below 2^63",
            object.first, object.capacity
        ));
    }
    limits::total(bytes(object))
}

/// Entries with a stamp, links, and the queue of those that expire.
fn bytes(object: &StateObject) -> u64 {
    let stride = memory::stride(8 + memory::words(object.value_bytes));
    let slab = memory::part(object.capacity.saturating_mul(stride));
    let links = memory::part(object.capacity.saturating_mul(4));
    memory::mapped(
        slab.saturating_add(links)
            .saturating_add(memory::expiry(object)),
    )
}
