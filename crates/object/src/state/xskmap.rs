//! The kernel's map of AF_XDP sockets, for redirects: the frame is consumed.

use super::{Addressing, StateKind, elements, limits, targets};
use crate::program::StateObject;

/// `BPF_MAP_TYPE_XSKMAP`
pub static KIND: StateKind = StateKind {
    name: "xskmap",
    c: "xskmap",
    bpf_type: Some(17),
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
    targets::value(object, false)?;
    elements::validate(object)
}
