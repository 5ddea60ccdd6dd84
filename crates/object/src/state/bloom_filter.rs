//! The kernel's Bloom filter: whether a value was put in, or probably.

use super::{Addressing, Call, Holds, PLAIN, StateKind, add, call, limits, look, memory, sequence};
use crate::contract::Reach::Bucket;
use crate::helper::{MAP_PEEK_ELEM, MAP_PUSH_ELEM};
use crate::program::StateObject;

/// `BPF_MAP_TYPE_BLOOM_FILTER`
pub static KIND: StateKind = StateKind {
    name: "bloom_filter",
    c: "bloom_filter",
    bpf_type: Some(30),
    addressing: Addressing::None,
    holds: Holds::Membership,
    calls: &[CALLS],
    at_capacity: "is never full: the more values there are, the more others seem to be among them",
    validate,
    bytes,
    ..PLAIN
};

/// Bits are of several values.
const CALLS: &[Call] = &[
    call(&MAP_PUSH_ELEM, add(Bucket)),
    call(&MAP_PEEK_ELEM, look(Bucket)),
];

/// Hash functions where `map_extra` names none (kernel/bpf/bloom_filter.c).
pub const HASHES: u32 = 5;

const ZERO_SEED: u32 = 1 << 6;

fn validate(object: &StateObject) -> Result<(), String> {
    let known = [limits::PLACED, &[(ZERO_SEED, "BPF_F_ZERO_SEED")]].concat();
    limits::flags(object, &known)?;
    sequence::no_key(object)?;
    limits::value(object)?;
    if !(1..=15).contains(&object.rows) {
        return Err(format!(
            "{} hash functions; 1 to 15 are possible, in the lower 4 bits of map_extra",
            object.rows
        ));
    }
    limits::capacity(object)?;
    limits::total(bytes(object))
}

/// The kernel's number of bits, see fastpath/state/bloom_filter.h.
fn bytes(object: &StateObject) -> u64 {
    let bits = (object.capacity.saturating_mul(u64::from(object.rows)) / 5).saturating_mul(7);
    let bits = if bits > 1 << 31 {
        1 << 32
    } else {
        memory::power_of_two(bits.max(64))
    };
    memory::mapped(bits / 8)
}
