//! Values in a row: what arrays and vectors have in common (fastpath/state/elements.h).

use super::{Call, call, limits, look, memory, timers, write};
use crate::contract::Reach::{Entry, Whole};
use crate::helper::{
    FOR_EACH_MAP_ELEM, MAP_DELETE_ELEM, MAP_LOOKUP_ELEM, MAP_SLOT, MAP_UPDATE_ELEM,
};
use crate::program::StateObject;

/// An element cannot be removed: that call only refuses.
pub(super) const CALLS: &[Call] = &[
    call(&MAP_LOOKUP_ELEM, look(Entry)),
    call(&MAP_UPDATE_ELEM, write(Entry)),
    call(&MAP_DELETE_ELEM, look(Entry)),
    call(&FOR_EACH_MAP_ELEM, look(Whole)),
    call(&MAP_SLOT, look(Entry)),
];

/// Map flags that change nothing here, `BPF_F_MMAPABLE` and memory's node; who may touch the values.
pub(super) const FLAGS: &[(u32, &str)] = &[
    (1 << 10, "BPF_F_MMAPABLE"),
    (1 << 2, "BPF_F_NUMA_NODE"),
    limits::ACCESS[0],
    limits::ACCESS[1],
    limits::ACCESS[2],
    limits::ACCESS[3],
];

pub(super) fn validate(object: &StateObject) -> Result<(), String> {
    limits::value(object)?;
    limits::capacity(object)?;
    timers::validate(object)?;
    limits::total(bytes(object))
}

/// Elements stand `value_bytes` apart, rounded up to 8.
pub(super) fn bytes(object: &StateObject) -> u64 {
    memory::mapped(
        object
            .capacity
            .saturating_mul(memory::words(object.value_bytes)),
    )
    .saturating_add(timers::bytes(object))
}
