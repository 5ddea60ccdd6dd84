//! The kernel's map of interfaces by index, for redirects: interface index n is port n - 1.

use super::{
    Addressing, Call, Destination, Holds, StateKind, call, elements, limits, look, targets,
};
use crate::contract::Reach::{Entry, Whole};
use crate::helper::{MAP_LOOKUP_ELEM, REDIRECT_MAP};
use crate::program::StateObject;

/// `BPF_MAP_TYPE_DEVMAP`
pub static KIND: StateKind = StateKind {
    name: "devmap",
    c: "devmap",
    bpf_type: Some(14),
    handler_kind: None,
    addressing: Addressing::Index,
    holds: Holds::Targets(Destination::Interface),
    per_cpu: false,
    evicts: false,
    hashed: false,
    calls: &[CALLS],
    at_capacity: "has an element for every index; one that the host has not set is absent",
    validate,
    bytes: elements::bytes,
};

/// A broadcast asks for all.
const CALLS: &[Call] = &[
    call(&MAP_LOOKUP_ELEM, look(Entry)),
    call(&REDIRECT_MAP, look(Whole)),
];

fn validate(object: &StateObject) -> Result<(), String> {
    limits::flags(
        object,
        &[
            (1 << 2, "BPF_F_NUMA_NODE"),
            (1 << 3, "BPF_F_RDONLY"),
            (1 << 4, "BPF_F_WRONLY"),
        ],
    )?;
    limits::index_key(object)?;
    targets::value(object, true)?;
    elements::validate(object)
}
