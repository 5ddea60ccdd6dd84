//! The kernel's array of maps of one shape.

use super::{Addressing, Holds, PLAIN, StateKind, call, limits, look, maps};
use crate::contract::Reach::Entry;
use crate::helper::MAP_LOOKUP_ELEM;
use crate::program::StateObject;

/// `BPF_MAP_TYPE_ARRAY_OF_MAPS`
pub static KIND: StateKind = StateKind {
    name: "array_of_maps",
    c: "array_of_maps",
    bpf_type: Some(12),
    addressing: Addressing::Index,
    holds: Holds::Maps,
    calls: &[&[call(&MAP_LOOKUP_ELEM, look(Entry))]],
    at_capacity: "has an element for every index; one that holds no map is absent",
    validate,
    bytes,
    ..PLAIN
};

fn validate(object: &StateObject) -> Result<(), String> {
    limits::flags(object, &[(1 << 2, "BPF_F_NUMA_NODE")])?;
    limits::index_key(object)?;
    maps::validate(object, bytes(object))
}

fn bytes(object: &StateObject) -> u64 {
    super::elements::bytes(&maps::stored(object))
}
