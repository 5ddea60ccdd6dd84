//! Entries by key: what hash maps have in common (fastpath/state/table.h).

use super::limits;
use crate::program::StateObject;

/// Map flags that change nothing here: how the kernel allocates entries, and where.
pub(super) const FLAGS: &[(u32, &str)] =
    &[(1 << 0, "BPF_F_NO_PREALLOC"), (1 << 2, "BPF_F_NUMA_NODE")];
/// The same for LRU maps: `BPF_F_NO_COMMON_LRU` divides the capacity among CPUs, as workers do.
pub(super) const LRU_FLAGS: &[(u32, &str)] =
    &[(1 << 1, "BPF_F_NO_COMMON_LRU"), (1 << 2, "BPF_F_NUMA_NODE")];

pub(super) fn validate(object: &StateObject) -> Result<(), String> {
    limits::key(object)?;
    limits::value(object)?;
    limits::capacity(object)?;
    limits::total(bytes(object))
}

pub(super) fn bytes(object: &StateObject) -> u64 {
    let key = u64::from(object.key_bytes).next_multiple_of(8);
    let value = u64::from(object.value_bytes).next_multiple_of(8);
    object.capacity.saturating_mul(key + value + 16)
}

pub(super) fn lru_bytes(object: &StateObject) -> u64 {
    bytes(object)
}
