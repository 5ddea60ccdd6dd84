//! Entries by key: what hash maps have in common (fastpath/state/table.h).

use super::{Call, call, limits, look, memory, timers, touch, write};
use crate::contract::Reach::{Bucket, Entry, Whole};
use crate::helper::{
    FOR_EACH_MAP_ELEM, MAP_DELETE_ELEM, MAP_LOOKUP_ELEM, MAP_SLOT, MAP_UPDATE_ELEM,
};
use crate::program::StateObject;

/// A new entry is one of a list of free ones.
pub(super) const CALLS: &[Call] = &[
    call(&MAP_LOOKUP_ELEM, look(Bucket)),
    call(&MAP_UPDATE_ELEM, write(Whole)),
    call(&MAP_DELETE_ELEM, write(Whole)),
    call(&FOR_EACH_MAP_ELEM, look(Whole)),
    call(&MAP_SLOT, look(Entry)),
];

/// Looking up marks an entry as used, in a word of 64 marks; visiting places does not.
pub(super) const LRU_CALLS: &[Call] = &[
    call(&MAP_LOOKUP_ELEM, touch(Bucket)),
    call(&MAP_UPDATE_ELEM, write(Whole)),
    call(&MAP_DELETE_ELEM, write(Whole)),
    call(&FOR_EACH_MAP_ELEM, look(Whole)),
    call(&MAP_SLOT, look(Entry)),
];

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
