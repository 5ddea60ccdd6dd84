//! The kernel's map of CPUs, for redirects: the frame goes to the host's network stack.

use super::{
    Addressing, Destination, Holds, PLAIN, StateKind, call, elements, limits, look, targets,
};
use crate::contract::Reach::Entry;
use crate::helper::REDIRECT_MAP;
use crate::program::StateObject;

/// `BPF_MAP_TYPE_CPUMAP`
pub static KIND: StateKind = StateKind {
    name: "cpumap",
    c: "cpumap",
    bpf_type: Some(16),
    addressing: Addressing::Index,
    holds: Holds::Targets(Destination::Cpu),
    calls: &[&[call(&REDIRECT_MAP, look(Entry))]],
    at_capacity: "has an element for every CPU; one that the host has not set is absent",
    validate,
    bytes: elements::bytes,
    ..PLAIN
};

fn validate(object: &StateObject) -> Result<(), String> {
    limits::flags(object, &[(1 << 2, "BPF_F_NUMA_NODE")])?;
    limits::index_key(object)?;
    targets::value(object, true)?;
    elements::validate(object)
}
