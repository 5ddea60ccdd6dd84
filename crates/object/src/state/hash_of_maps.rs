//! The kernel's hash map of maps of one shape.

use super::{Addressing, Holds, PLAIN, StateKind, call, keyed, limits, look, maps};
use crate::contract::Reach::Bucket;
use crate::helper::MAP_LOOKUP_ELEM;
use crate::program::StateObject;

/// `BPF_MAP_TYPE_HASH_OF_MAPS`
pub static KIND: StateKind = StateKind {
    name: "hash_of_maps",
    c: "hash_of_maps",
    bpf_type: Some(13),
    addressing: Addressing::Key,
    holds: Holds::Maps,
    hashed: true,
    calls: &[&[call(&MAP_LOOKUP_ELEM, look(Bucket))]],
    at_capacity: "the host cannot set another map",
    validate,
    bytes,
    ..PLAIN
};

fn validate(object: &StateObject) -> Result<(), String> {
    limits::flags(object, keyed::FLAGS)?;
    limits::key(object)?;
    maps::validate(object, bytes(object))
}

fn bytes(object: &StateObject) -> u64 {
    keyed::bytes(&maps::stored(object))
}
