//! Entries that fill an object before an execution, of which there may be as many as the object holds: each is made when it is
//! asked for.

use std::collections::BTreeSet;
use std::ops::Range;

use millrace_object::program::{ObjectId, StateObject};

use super::super::Machine;
use super::index;
use super::seed::number;

/// Entries that are not made yet.
#[derive(Default)]
pub(super) struct Crowd {
    entries: u64,
    /// their keys are these numbers, their values zero; empty where no key leads to them
    keys: Range<u64>,
    /// keys within that are not theirs, or no longer
    but: BTreeSet<Vec<u8>>,
}

impl Crowd {
    fn has(&self, o: &StateObject, key: &[u8]) -> bool {
        let n = number(key);
        self.keys.contains(&n) && index(o, n) == key && !self.but.contains(key)
    }
}

impl Machine<'_> {
    /// Fills an object with this many entries that no key leads to. They do not expire; an allocator has no free number
    /// then.
    pub fn crowd(&mut self, object: ObjectId, entries: u64) {
        self.crowd_under(object, entries, 0..0, &[]);
    }

    /// Fills a map with this many entries, whose keys are these numbers but those, and whose values are zero.
    pub fn crowd_under(
        &mut self,
        object: ObjectId,
        entries: u64,
        keys: Range<u64>,
        but: &[Vec<u8>],
    ) {
        if let Some(exact) = &mut self.exact {
            let but = but.iter().cloned().collect();
            let crowd = Crowd { entries, keys, but };
            exact.crowds.insert(object, crowd);
        }
    }

    /// Number of such entries of an object.
    pub(super) fn crowd_of(&self, id: ObjectId) -> u64 {
        let crowds = self.exact.as_ref().map(|e| &e.crowds);
        crowds.and_then(|c| c.get(&id)).map_or(0, |c| c.entries)
    }

    /// Whether one of them has this key.
    pub(super) fn is_crowded(&self, id: ObjectId, o: &StateObject, key: &[u8]) -> bool {
        let crowds = self.exact.as_ref().map(|e| &e.crowds);
        crowds
            .and_then(|c| c.get(&id))
            .is_some_and(|c| c.has(o, key))
    }

    /// Makes the entry of this key, if it is one of them.
    pub(super) fn meet(&mut self, id: ObjectId, o: &StateObject, key: &[u8]) {
        if !self.is_crowded(id, o, key) {
            return;
        }
        let crowd = self.exact.as_mut().and_then(|e| e.crowds.get_mut(&id));
        if let Some(crowd) = crowd {
            crowd.entries = crowd.entries.saturating_sub(1);
            crowd.but.insert(key.to_vec());
        }
        self.set(id, key, &vec![0; o.value_bytes as usize]);
    }

    /// Makes all of them that have keys.
    pub(super) fn meet_all(&mut self, id: ObjectId) {
        let Some(o) = self.declaration(id).cloned() else {
            return;
        };
        let crowds = self.exact.as_ref().map(|e| &e.crowds);
        let keys = crowds.and_then(|c| c.get(&id)).map(|c| c.keys.clone());
        for n in keys.unwrap_or_default() {
            self.meet(id, &o, &index(&o, n));
        }
    }
}
