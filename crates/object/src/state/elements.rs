//! Values in a row: what arrays and vectors have in common (fastpath/state/elements.h).

use super::{limits, memory, timers};
use crate::program::StateObject;

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
