//! State that another execution left: an object's whole content, taken over exactly, so that what goes on from there does
//! with each packet what would have been done had the machine executed all packets before it.
//!
//! What a content is, emitted code says (`struct mr_saved` of `fastpath/abi.h`): entries at their places, what is free in
//! the order in which it is taken next, times of the last refresh, timers that run. Of this only what a later result may
//! depend on is taken over.

use std::collections::{BTreeMap, VecDeque};

use millrace_object::contract::Holds;
use millrace_object::program::{ObjectId, StateObject};
use millrace_object::state::{Addressing, lpm, lpm_trie};

use super::exact::handlers::Leases;
use super::exact::{self, lru, prefix};
use super::{APART, Machine};

/// An entry as it was.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Entry {
    /// where it was: an index, a number from the allocator's first, a place of a table
    pub place: u64,
    /// its key, where the kind has keys
    pub key: Vec<u8>,
    /// its value
    pub value: Vec<u8>,
    /// when it was last refreshed, ns; of kinds that evict, not 0 if it was used since the hand passed
    pub stamp: u64,
    /// of prefixes, how many bits count; of timers, which of those started it is
    pub order: u64,
    /// when its timer fires, ns; none: it is not running
    pub due: Option<u64>,
    /// its timer is ready: the function that it calls, if one was set
    pub timer: Option<Option<usize>>,
}

/// The content of one object.
#[derive(Clone, Debug, Default)]
pub struct Held {
    /// its entries, by place
    pub entries: Vec<Entry>,
    /// free places and since when they are free, ns, the next to be taken first
    pub free: Vec<(u64, u64)>,
    /// a number of the object: of kinds that evict the hand, of an allocator how many numbers were ever leased, of a ring
    /// buffer the bytes that were ever taken
    pub place: u64,
    /// timers that were ever started
    pub started: u64,
    /// bytes of a global
    pub bytes: Vec<u8>,
}

impl Machine<'_> {
    /// The time, ns, and nothing else: no timer fires on the way.
    pub fn comes(&mut self, now: u64) {
        if let Some(exact) = &mut self.exact {
            exact.clock.at(now, 0);
        }
    }

    /// Whether an object's content can be taken over exactly. A sketch counts exactly here and within bounds in emitted
    /// code: it is asked key by key ([`Machine::estimate`]). A Bloom filter keeps no values.
    #[must_use]
    pub fn takes(&self, object: ObjectId) -> bool {
        let declaration = self.declaration(object);
        declaration.is_some_and(|o| !o.kind.membership() && o.kind.holds != Holds::Estimates)
    }

    /// Makes an object hold this and nothing else. False where that cannot be exact.
    pub fn take(&mut self, object: ObjectId, held: Held) -> bool {
        let Some(o) = self.declaration(object).cloned() else {
            return false;
        };
        if !self.takes(object) {
            return false;
        }
        if o.kind.is_global() {
            return self.take_bytes(object, &held.bytes);
        }
        if let Some(exact) = &mut self.exact {
            exact.clock.at(exact.clock.time(), held.started);
        }
        if o.kind.holds_records() {
            if let Some(exact) = &mut self.exact {
                exact.produced.insert(object, (held.place, held.place));
            }
            return true;
        }
        if let Holds::Sequence { .. } = o.kind.holds {
            let values: VecDeque<Vec<u8>> = held.entries.into_iter().map(|e| e.value).collect();
            if let Some(exact) = &mut self.exact {
                exact.sequences.insert(object, values);
            }
            return true;
        }
        if o.kind.leases() {
            self.take_leases(object, &o, held);
            return true;
        }
        self.take_entries(object, &o, held);
        true
    }

    fn take_bytes(&mut self, object: ObjectId, bytes: &[u8]) -> bool {
        let at = self.values.get(&object).copied();
        let memory = at.and_then(|at| self.memory.get_mut(&(at / APART)));
        let Some(memory) = memory.filter(|m| m.bytes.len() == bytes.len()) else {
            return bytes.is_empty();
        };
        memory.bytes.copy_from_slice(bytes);
        memory.written.fill(true);
        true
    }

    fn take_leases(&mut self, id: ObjectId, o: &StateObject, held: Held) {
        let mut leases = Leases::default();
        for _ in 0..held.place {
            let at = self.map(vec![0; o.value_bytes as usize], true, true);
            leases.values.push(at);
        }
        for entry in held.entries {
            let place = entry.place as usize;
            leases.leased.insert(place, entry.stamp);
            let at = leases.values.get(place);
            if let Some(memory) = at.and_then(|at| self.memory.get_mut(&(at / APART))) {
                memory.bytes = entry.value;
            }
        }
        let free = held.free.iter();
        leases.freed = free
            .map(|(place, since)| (*since, *place as usize))
            .collect();
        if let Some(exact) = &mut self.exact {
            exact.own.leases.insert(id, leases);
        }
    }

    fn take_entries(&mut self, id: ObjectId, o: &StateObject, held: Held) {
        let indexed = o.kind.addressing == Addressing::Index;
        let mut entries = BTreeMap::new();
        let (mut stamps, mut puts) = (BTreeMap::new(), BTreeMap::new());
        let mut places = Vec::new();
        for entry in held.entries {
            let key = match () {
                () if *o.kind == lpm_trie::KIND => prefix::masked(&entry.key),
                () if *o.kind == lpm::KIND => prefix::prefixed(entry.order, &entry.key),
                () if indexed && entry.key.is_empty() => exact::index(o, entry.place),
                () => entry.key,
            };
            let at = self.map(entry.value, true, true);
            self.timer_as_new(id, at);
            if let (Some(callback), Some(offset), Some(exact)) =
                (entry.timer, o.timer, &mut self.exact)
            {
                let due = entry.due.map(|due| (due, entry.order));
                exact.clock.ready(at + u64::from(offset), callback, due);
            }
            if o.kind.evicts {
                places.push((entry.place as usize, key.clone(), entry.stamp != 0));
            } else {
                stamps.insert(key.clone(), entry.stamp);
                puts.insert(key.clone(), entry.order);
            }
            entries.insert(key, at);
        }
        let Some(exact) = &mut self.exact else { return };
        exact.maps.insert(id, entries);
        if o.kind.evicts {
            let free: Vec<usize> = held.free.iter().map(|f| f.0 as usize).collect();
            let clock = lru::Clock::of(
                o.capacity as usize,
                places.into_iter(),
                &free,
                held.place as usize,
            );
            exact.clocks.insert(id, clock);
        } else if *o.kind == millrace_object::state::map::KIND {
            exact.own.stamps.insert(id, stamps);
            if o.expiry.is_some() {
                exact.own.puts.insert(id, puts);
            }
        }
    }
}
