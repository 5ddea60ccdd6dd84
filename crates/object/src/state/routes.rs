//! The routing table that `bpf_fib_lookup` and `bpf_check_mtu` ask: ports, routes, neighbours.
//!
//! No program declares it. One that calls such a helper has one, named [`NAME`], which the host fills
//! before the first packet (docs/routes.md).

use super::{Addressing, Call, Holds, PLAIN, StateKind, call, hash, limits, look, memory};
use crate::contract::Reach::{Entry, Whole};
use crate::helper::{CHECK_MTU, FIB_LOOKUP};
use crate::program::StateObject;

/// The object's name, which no map of an author can have.
pub const NAME: &str = ".routes";

/// Next hops, and neighbours, that there is room for unless the host asks for more.
pub const CAPACITY: u64 = 1024;

/// no map type
pub static KIND: StateKind = StateKind {
    name: "routes",
    c: "routes",
    addressing: Addressing::Key,
    holds: Holds::Routes,
    calls: &[CALLS],
    at_capacity: "takes no more routes or neighbours from the host",
    validate,
    bytes,
    ..PLAIN
};

/// MTUs are of one port.
const CALLS: &[Call] = &[
    call(&FIB_LOOKUP, look(Whole)),
    call(&CHECK_MTU, look(Entry)),
];

/// A table of this many next hops.
#[must_use]
pub fn object(capacity: u64) -> StateObject {
    StateObject::new(NAME, &KIND, KEY_BYTES, VALUE_BYTES, capacity)
}

const KEY_BYTES: u32 = 24;
const VALUE_BYTES: u32 = 64;

fn validate(object: &StateObject) -> Result<(), String> {
    limits::capacity(object)?;
    limits::total(bytes(object))
}

/// As fastpath/state/routes_table.h lays it out.
fn bytes(object: &StateObject) -> u64 {
    const PORTS: u64 = 1024 * 16;
    const HOP: u64 = 96;
    let entries = object.capacity;
    // Prefixes of up to 256 entries have no table by their first 16 bits.
    let direct = if entries > 256 { 65536 * 8 } else { 0 };
    let trie = |node: u64| {
        memory::part(entries.saturating_mul(2 * node))
            .saturating_add(memory::part(entries.saturating_mul(8)))
            .saturating_add(memory::part(entries.saturating_mul(4)))
            .saturating_add(direct)
    };
    let own = memory::part(PORTS)
        .saturating_add(memory::part(entries.saturating_mul(HOP)))
        .saturating_add(trie(32))
        .saturating_add(trie(64));
    let neighbours = StateObject {
        kind: &hash::KIND,
        key_bytes: 24,
        value_bytes: 8,
        expire_after: 0,
        ..object.clone()
    };
    memory::mapped(own).saturating_add((hash::KIND.bytes)(&neighbours))
}
