//! Entries by key: what hash maps have in common (fastpath/state/table.h).

use super::{limits, memory, timers};
use crate::program::StateObject;

/// Map flags that change nothing here, how the kernel allocates entries, and where; who may touch the values.
pub(super) const FLAGS: &[(u32, &str)] = &[
    (1 << 0, "BPF_F_NO_PREALLOC"),
    (1 << 2, "BPF_F_NUMA_NODE"),
    limits::ACCESS[0],
    limits::ACCESS[1],
    limits::ACCESS[2],
    limits::ACCESS[3],
];
/// The same for LRU maps: `BPF_F_NO_COMMON_LRU` divides the capacity among CPUs, as workers do.
pub(super) const LRU_FLAGS: &[(u32, &str)] =
    &[(1 << 1, "BPF_F_NO_COMMON_LRU"), (1 << 2, "BPF_F_NUMA_NODE")];

pub(super) fn validate(object: &StateObject) -> Result<(), String> {
    limits::key(object)?;
    if object.kind.handler_kind.is_some() {
        limits::value_or_none(object)?;
    } else {
        limits::value(object)?;
    }
    limits::capacity(object)?;
    timers::validate(object)?;
    limits::total(bytes(object))
}

/// The stamp of an entry that expires takes 8 bytes.
pub(super) fn bytes(object: &StateObject) -> u64 {
    let head = if object.expire_after == 0 { 0 } else { 8 };
    memory::mapped(memory::table(object, head).saturating_add(memory::expiry(object)))
        .saturating_add(timers::bytes(object))
}

/// A bit an entry says whether it was used lately.
pub(super) fn lru_bytes(object: &StateObject) -> u64 {
    let used = memory::part(object.capacity.div_ceil(64).saturating_mul(8));
    memory::mapped(memory::table(object, 0).saturating_add(used))
        .saturating_add(timers::bytes(object))
}
