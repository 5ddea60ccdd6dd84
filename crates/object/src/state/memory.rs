//! How the C side lays out memory (fastpath/base.h, table.h, expiry.h): what `bytes` of the kinds add up.
//!
//! Declarations that do not pass `validate` may be absurd, so sums saturate.

use crate::program::StateObject;

const PAGE: u64 = 4096;
const HUGE_PAGE: u64 = 2 << 20;

fn round_up(n: u64, multiple: u64) -> u64 {
    n.div_ceil(multiple).saturating_mul(multiple)
}

/// Whole pages, from 2 MiB on whole huge pages.
pub(super) fn mapped(bytes: u64) -> u64 {
    round_up(bytes, if bytes < HUGE_PAGE { PAGE } else { HUGE_PAGE })
}

/// A part of a mapping: whole cache lines.
pub(super) fn part(bytes: u64) -> u64 {
    round_up(bytes, 64)
}

/// Whole 64-bit words.
pub(super) fn words(bytes: u32) -> u64 {
    u64::from(bytes).next_multiple_of(8)
}

/// The smallest power of two that is not below `n`.
pub(super) fn power_of_two(n: u64) -> u64 {
    n.checked_next_power_of_two().unwrap_or(u64::MAX)
}

/// Bytes from one entry of so many bytes to the next: small ones do not straddle cache lines.
pub(super) fn stride(raw: u64) -> u64 {
    if raw <= 64 {
        power_of_two(raw)
    } else {
        round_up(raw, 64)
    }
}

/// The keyed table: buckets of a cache line, entries with `head` bytes of their own, links.
pub(super) fn table(object: &StateObject, head: u64) -> u64 {
    let entries = object.capacity;
    let primaries = power_of_two(entries.div_ceil(8));
    let buckets = primaries
        .saturating_add(entries / 15 + 1)
        .saturating_mul(64);
    let entry = stride(head + words(object.key_bytes) + words(object.value_bytes));
    part(buckets)
        .saturating_add(part(entry.saturating_mul(entries)))
        .saturating_add(part(entries.saturating_mul(4)))
}

/// The queue of entries that expire, if they do; those whose expiry runs a function are among the timers.
pub(super) fn expiry(object: &StateObject) -> u64 {
    match object.expire_after {
        _ if object.expiry.is_some() => 0,
        0 => 0,
        _ => part(object.capacity.saturating_add(4).saturating_mul(16)),
    }
}

/// A map whose packets are transactions (fastpath/state/transact_map.h, pools.h), without what it has for each worker. `timed`: its
/// entries have the time of their last writer.
pub fn transacted(object: &StateObject, timed: bool) -> u64 {
    let buckets = power_of_two(object.capacity.div_ceil(8))
        .saturating_add(object.capacity / 13 + 1)
        .saturating_mul(64);
    worded(object, timed, part(buckets))
}

/// Likewise an allocator, whose entries are found by number (transact_leases.h).
pub fn transacted_leases(object: &StateObject, timed: bool) -> u64 {
    worded(object, timed, 0)
}

/// Entries with version words, beside these buckets, and pools.
fn worded(object: &StateObject, timed: bool, buckets: u64) -> u64 {
    let (entries, expires) = (object.capacity, object.expire_after > 0);
    let head = 8 + 8 * u64::from(expires) + 8 * u64::from(timed);
    let entry = stride(head + words(object.key_bytes) + words(object.value_bytes));
    let table = buckets.saturating_add(part(entry.saturating_mul(entries)));
    let links = part(entries.saturating_mul(4)).saturating_add(part(entries.saturating_mul(2)));
    let places = if expires {
        part(entries.saturating_mul(4)).saturating_add(part(entries.saturating_mul(16)))
    } else {
        0
    };
    mapped(table).saturating_add(mapped(links.saturating_add(places)))
}

/// What each worker adds to it: stamps, a pool, and the beginning of its heap of expiry times.
pub fn transacted_per_worker(object: &StateObject) -> u64 {
    let heap = if object.expire_after > 0 { 128 } else { 0 };
    stamps(object).saturating_add(128 + 64 + heap)
}

/// When a worker last refreshed each entry of what workers share, and how often it found none free (fastpath/sync/stamps.h).
pub fn stamps(object: &StateObject) -> u64 {
    match object.expire_after {
        0 => 64,
        _ => part(object.capacity.saturating_add(1).saturating_mul(8)),
    }
}
