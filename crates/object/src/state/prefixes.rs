//! Longest-prefix tries of either dialect (fastpath/state/lpm_trie.h).

use super::{limits, memory};
use crate::program::StateObject;

pub(super) fn validate(object: &StateObject, bytes: u64) -> Result<(), String> {
    limits::value(object)?;
    limits::capacity(object)?;
    limits::total(bytes)
}

/// Two nodes a prefix, values, their owners, and for large tables the rows by the first 16 bits.
pub(super) fn bytes(object: &StateObject, address_bytes: u32) -> u64 {
    let raw = 16 + memory::words(address_bytes);
    let node = if raw <= 64 {
        memory::power_of_two(raw)
    } else {
        raw
    };
    let prefixes = object.capacity;
    let direct = if prefixes > 256 && address_bytes > 2 {
        65_536 * 8
    } else {
        0
    };
    let nodes = memory::part(prefixes.saturating_mul(2).saturating_mul(node));
    let values = memory::part(prefixes.saturating_mul(memory::words(object.value_bytes)));
    let owners = memory::part(prefixes.saturating_mul(4));
    memory::mapped(
        nodes
            .saturating_add(values)
            .saturating_add(owners)
            .saturating_add(direct),
    )
}
