//! The kernel's map of interfaces by key, for redirects: interface index n is port n - 1.

use super::{
    Addressing, Call, Destination, Holds, PLAIN, StateKind, call, keyed, limits, look, targets,
};
use crate::contract::Reach::{Bucket, Whole};
use crate::helper::{MAP_LOOKUP_ELEM, REDIRECT_MAP};
use crate::program::StateObject;

/// `BPF_MAP_TYPE_DEVMAP_HASH`
pub static KIND: StateKind = StateKind {
    name: "devmap_hash",
    c: "devmap_hash",
    bpf_type: Some(25),
    addressing: Addressing::Key,
    holds: Holds::Targets(Destination::Interface),
    hashed: true,
    calls: &[CALLS],
    at_capacity: "the host cannot set another interface",
    validate,
    bytes: keyed::bytes,
    ..PLAIN
};

/// A broadcast asks for all.
const CALLS: &[Call] = &[
    call(&MAP_LOOKUP_ELEM, look(Bucket)),
    call(&REDIRECT_MAP, look(Whole)),
];

fn validate(object: &StateObject) -> Result<(), String> {
    limits::flags(object, limits::PLACED)?;
    limits::index_key(object)?;
    targets::value(object, true)?;
    keyed::validate(object)
}
