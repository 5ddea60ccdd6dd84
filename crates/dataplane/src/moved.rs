//! State that goes from one instance of a module to another while packets come: entries with their stamps and timers, leases with the free
//! numbers beside them.
//!
//! Two use it: heavy keys that are replicated and sharded again (`crate::replica`), and buckets of the indirection table that change their
//! worker ([`crate::classes`], `crate::worker`). What is where is told by keys of entries alone ([`Keys`], [`millrace_steer::buckets::Buckets`]).

mod bytes;
mod contents;

use std::sync::Arc;

use millrace_steer::hybrid::{Key, Keys};

use crate::module::{Instance, Stamped};

pub use bytes::{Unread, from_bytes, to_bytes};
pub use contents::{Contents, Full};

/// Entries, each with its object.
pub type Entries = Arc<Vec<(usize, Stamped)>>;

/// The entries of a key in an instance.
pub(crate) fn found(
    from: &mut Instance,
    objects: &[usize],
    keys: &dyn Keys,
    key: Key,
) -> Vec<(usize, Stamped)> {
    let mut all = Vec::new();
    for object in objects {
        // What does not list its entries was refused before (`millrace::place`).
        let found = from.select(*object, &mut |bytes| keys.belongs(*object, bytes, key));
        all.extend(found.unwrap_or_default().into_iter().map(|e| (*object, e)));
    }
    all
}

/// Takes the entries of a key out of an instance.
pub(crate) fn take(
    from: &mut Instance,
    objects: &[usize],
    keys: &dyn Keys,
    key: Key,
) -> Vec<(usize, Stamped)> {
    let all = found(from, objects, keys, key);
    remove(from, &all);
    all
}

/// Takes entries that were found there out of an instance.
pub(crate) fn remove(from: &mut Instance, all: &[(usize, Stamped)]) {
    for (object, entry) in all.iter().filter(|(_, e)| !e.rest.free) {
        // It lives at its own time.
        let _ = from.remove(*object, &entry.key, entry.stamp);
    }
}

/// Puts entries into an instance at `now`, ns, with their stamps; how many found no room.
pub(crate) fn put(to: &mut Instance, entries: &[(usize, Stamped)], now: u64) -> u64 {
    let mut lost = 0;
    for (object, entry) in entries {
        let done = to.put(*object, entry, now.max(entry.stamp));
        lost += u64::from(!matches!(done, Ok(true)));
    }
    lost
}
