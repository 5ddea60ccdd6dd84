//! The kernel's map of interfaces by index, for redirects: interface index n is port n - 1.

use super::{Addressing, StateKind, elements, limits, targets};
use crate::program::StateObject;

/// `BPF_MAP_TYPE_DEVMAP`
pub static KIND: StateKind = StateKind {
    name: "devmap",
    c: "devmap",
    bpf_type: Some(14),
    handler_kind: None,
    addressing: Addressing::Index,
    hashed: false,
    at_capacity: "has an element for every index; one that the host has not set is absent",
    validate,
    bytes: elements::bytes,
};

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
