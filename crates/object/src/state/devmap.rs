//! The kernel's map of interfaces by index, for redirects: interface index n is port n - 1.

use super::{
    Addressing, Call, Destination, Holds, PLAIN, StateKind, call, elements, limits, look, targets,
};
use crate::contract::Reach::{Entry, Whole};
use crate::helper::{MAP_LOOKUP_ELEM, REDIRECT_MAP};
use crate::program::StateObject;

/// `BPF_MAP_TYPE_DEVMAP`
pub static KIND: StateKind = StateKind {
    name: "devmap",
    c: "devmap",
    bpf_type: Some(14),
    addressing: Addressing::Index,
    holds: Holds::Targets(Destination::Interface),
    calls: &[CALLS],
    at_capacity: "has an element for every index; one that the host has not set is absent",
    validate,
    bytes: elements::bytes,
    ..PLAIN
};

/// A broadcast asks for all.
const CALLS: &[Call] = &[
    call(&MAP_LOOKUP_ELEM, look(Entry)),
    call(&REDIRECT_MAP, look(Whole)),
];

fn validate(object: &StateObject) -> Result<(), String> {
    limits::flags(object, limits::PLACED)?;
    limits::index_key(object)?;
    targets::value(object, true)?;
    elements::validate(object)
}
