//! The kernel's map of AF_XDP sockets, for redirects: the frame is consumed.

use super::{
    Addressing, Call, Destination, Holds, PLAIN, StateKind, call, elements, limits, look, targets,
};
use crate::contract::Reach::Entry;
use crate::helper::{MAP_LOOKUP_ELEM, REDIRECT_MAP};
use crate::program::StateObject;

/// `BPF_MAP_TYPE_XSKMAP`
pub static KIND: StateKind = StateKind {
    name: "xskmap",
    c: "xskmap",
    bpf_type: Some(17),
    addressing: Addressing::Index,
    holds: Holds::Targets(Destination::Socket),
    calls: &[CALLS],
    at_capacity: "has an element for every index; one that the host has not set is absent",
    validate,
    bytes: elements::bytes,
    ..PLAIN
};

/// Each is about one socket.
const CALLS: &[Call] = &[
    call(&MAP_LOOKUP_ELEM, look(Entry)),
    call(&REDIRECT_MAP, look(Entry)),
];

fn validate(object: &StateObject) -> Result<(), String> {
    limits::flags(object, limits::PLACED)?;
    limits::index_key(object)?;
    targets::value(object, false)?;
    elements::validate(object)
}
