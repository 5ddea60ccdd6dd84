//! The kernel's ring buffer: records for the host, in order.

use super::{Addressing, Call, Holds, PLAIN, StateKind, call, limits, look, memory, write};
use crate::contract::Reach::{Entry, Whole};
use crate::helper::{
    RINGBUF_DISCARD, RINGBUF_OUTPUT, RINGBUF_QUERY, RINGBUF_RESERVE, RINGBUF_SUBMIT,
};
use crate::program::StateObject;

/// `BPF_MAP_TYPE_RINGBUF`
pub static KIND: StateKind = StateKind {
    name: "ringbuf",
    c: "ringbuf",
    bpf_type: Some(27),
    addressing: Addressing::None,
    holds: Holds::Records,
    calls: &[CALLS],
    at_capacity: "no record is reserved (null) until the host has taken some",
    validate,
    bytes,
    ..PLAIN
};

/// Records lie one behind the other.
const CALLS: &[Call] = &[
    call(&RINGBUF_OUTPUT, write(Whole)),
    call(&RINGBUF_RESERVE, write(Whole)),
    call(&RINGBUF_SUBMIT, write(Entry)),
    call(&RINGBUF_DISCARD, write(Entry)),
    call(&RINGBUF_QUERY, look(Whole)),
];

/// The kernel's page.
const PAGE: u64 = 4096;

fn validate(object: &StateObject) -> Result<(), String> {
    limits::flags(object, &[(1 << 2, "BPF_F_NUMA_NODE")])?;
    if object.key_bytes != 0 || object.value_bytes != 0 {
        return Err("it has neither keys nor values; leave them out".to_owned());
    }
    let bytes = object.capacity;
    if !bytes.is_power_of_two() || !(PAGE..=limits::MAX_CAPACITY).contains(&bytes) {
        return Err(format!(
            "max_entries (its bytes) is {bytes}; a power of two from {PAGE} to {} is possible",
            limits::MAX_CAPACITY
        ));
    }
    Ok(())
}

/// Twice the ring: a record that would wrap goes on behind its end.
fn bytes(object: &StateObject) -> u64 {
    memory::mapped(object.capacity.saturating_mul(2))
}
