//! The kernel's perf event array: records for the host, with bytes of the packet.

use super::{Addressing, Holds, PLAIN, StateKind, call, limits, memory, write};
use crate::contract::Reach::Whole;
use crate::helper::PERF_EVENT_OUTPUT;
use crate::program::StateObject;

/// `BPF_MAP_TYPE_PERF_EVENT_ARRAY`
pub static KIND: StateKind = StateKind {
    name: "perf_event_array",
    c: "perf_event_array",
    bpf_type: Some(4),
    addressing: Addressing::None,
    holds: Holds::Records,
    calls: &[&[call(&PERF_EVENT_OUTPUT, write(Whole))]],
    at_capacity: "a record is refused (-ENOSPC) until the host has taken some",
    validate,
    bytes,
    ..PLAIN
};

/// The ring of fastpath/state/perf_event_array.h: `PERF_BYTES`, twice.
const RING: u64 = 2 << 20;

fn validate(object: &StateObject) -> Result<(), String> {
    limits::flags(
        object,
        &[
            (1 << 2, "BPF_F_NUMA_NODE"),
            (1 << 11, "BPF_F_PRESERVE_ELEMS"),
        ],
    )?;
    limits::index_key(object)?;
    limits::descriptor(object)?;
    limits::capacity(object)
}

fn bytes(_: &StateObject) -> u64 {
    memory::mapped(RING)
}
