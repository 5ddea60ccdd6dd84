//! The handlers' state objects: maps whose entries expire, vectors, leases, sketches, as docs/dialect.md
//! says. An entry that has expired is removed when somebody looks for it; nobody can tell when.
//!
//! A sketch counts exactly here. One that shares its counters may say more, so that two implementations
//! agree as long as no two keys share all of theirs.

use std::collections::{BTreeMap, VecDeque};

use millrace_object::program::{ObjectId, StateObject};

use super::super::{APART, Machine, Violation, index_key, violation};

/// What the handlers' objects hold besides the bytes of entries.
#[derive(Default)]
pub struct Handlers {
    /// when each entry was last refreshed
    stamps: BTreeMap<(ObjectId, Vec<u8>), u64>,
    leases: BTreeMap<ObjectId, Leases>,
    /// window and sum
    sums: BTreeMap<(ObjectId, Vec<u8>), (u64, u32)>,
    /// entries that take room and have no key (`Machine::crowd`)
    crowds: BTreeMap<ObjectId, u64>,
}

/// Which numbers of an allocator are free; those that are leased are entries.
#[derive(Default)]
struct Leases {
    /// how many of the numbers, from the first on, have ever been leased
    fresh: u64,
    /// the numbers that were given back and when, the first of them first
    freed: VecDeque<(u64, u64)>,
}

/// Whether an object is one of these.
pub(super) fn is_of_handlers(object: &StateObject) -> bool {
    matches!(object.kind.name, "map" | "vector" | "allocator" | "sketch")
}

/// CRC-32C of a word, continuing `seed` (RFC 3720 B.4), without the inversions before and after.
pub(super) fn crc32c(seed: u32, word: u64) -> u32 {
    word.to_le_bytes().iter().fold(seed, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| {
            (crc >> 1) ^ (0x82f6_3b78 & (crc & 1).wrapping_neg())
        })
    })
}

impl Machine<'_> {
    /// Fills an object with so many entries whose keys nobody will ask for. They do not expire.
    pub fn crowd(&mut self, object: ObjectId, entries: u64) {
        if let Some(exact) = &mut self.exact {
            exact.handlers.crowds.insert(object, entries);
        }
    }

    /// Entries without a key that fill an object.
    pub(super) fn crowd_of(&self, id: ObjectId) -> u64 {
        let crowds = self.exact.as_ref().map(|e| &e.handlers.crowds);
        crowds.and_then(|c| c.get(&id)).copied().unwrap_or(0)
    }

    /// Leases a number with this value, whether it is free or not: free numbers below it that were never
    /// leased count as given back now, in their order.
    pub(super) fn lease_number(&mut self, id: ObjectId, o: &StateObject, key: &[u8], value: &[u8]) {
        let now = self.now();
        let number = key.iter().rev().fold(0, |n, b| n << 8 | u64::from(*b));
        let Some(at) = number.checked_sub(o.first).filter(|i| *i < o.capacity) else {
            return;
        };
        if let Some(exact) = &mut self.exact {
            let leases = exact.handlers.leases.entry(id).or_default();
            leases.freed.retain(|(i, _)| *i != at);
            leases.freed.extend((leases.fresh..at).map(|i| (i, now)));
            leases.fresh = leases.fresh.max(at + 1);
        }
        self.put_value(id, key, value);
    }

    /// Gives a leased number back.
    pub fn free(&mut self, object: ObjectId, key: &[u8]) {
        let now = self.now();
        let first = self.declaration(object).map_or(0, |o| o.first);
        let number = key.iter().rev().fold(0, |n, b| n << 8 | u64::from(*b));
        self.drop_entry(object, key);
        if let Some(exact) = &mut self.exact {
            let leases = exact.handlers.leases.entry(object).or_default();
            leases.freed.push_back((number - first, now));
        }
    }

    /// Says what the estimate of a key is.
    pub fn estimate(&mut self, object: ObjectId, key: &[u8], sum: u32) {
        let now = self.now();
        let window = self.declaration(object).map_or(0, |o| o.window);
        if let Some(exact) = &mut self.exact {
            let window = now.checked_div(window).unwrap_or(0);
            let sums = &mut exact.handlers.sums;
            sums.insert((object, key.to_vec()), (window, sum));
        }
    }

    /// The value under a key as it is now; none if there is no entry, or it has expired. Unlike a lookup this
    /// changes nothing.
    #[must_use]
    pub fn peek(&self, object: ObjectId, key: &[u8]) -> Option<Vec<u8>> {
        let o = self.declaration(object)?;
        if o.kind.name == "global" {
            return self.value(object).map(<[u8]>::to_vec);
        }
        let exact = self.exact.as_ref()?;
        if o.kind.name == "sketch" {
            let window = self.now().checked_div(o.window).unwrap_or(0);
            let sum = exact.handlers.sums.get(&(object, key.to_vec()));
            let sum = sum.filter(|s| s.0 >= window).map_or(0, |s| s.1);
            return (o.value_bytes == 4).then(|| sum.to_le_bytes().to_vec());
        }
        match exact.maps.get(&object)?.get(key) {
            Some(at) if !self.expired(object, o, key) => {
                self.memory.get(&(at / APART)).map(|m| m.bytes.clone())
            }
            Some(_) => None,
            None => {
                let elements = o.kind.c == "array" || o.kind.name == "vector";
                let number = key.iter().rev().fold(0, |n, b| n << 8 | u64::from(*b));
                (elements && number < o.capacity).then(|| vec![0; o.value_bytes as usize])
            }
        }
    }

    /// How many live entries an object has.
    #[must_use]
    pub fn count(&self, object: ObjectId) -> u64 {
        let Some(o) = self.declaration(object) else {
            return 0;
        };
        let entries = self.exact.as_ref().and_then(|e| e.maps.get(&object));
        let live = entries.map_or(0, |entries| {
            let live = entries.keys().filter(|key| !self.expired(object, o, key));
            live.count() as u64
        });
        live + self.crowd_of(object)
    }

    /// Whether no further entry fits.
    #[must_use]
    pub fn is_full(&self, object: ObjectId) -> bool {
        let capacity = self.declaration(object).map_or(u64::MAX, |o| o.capacity);
        let entries = self.exact.as_ref().and_then(|e| e.maps.get(&object));
        // Those that have expired are counted only where it matters.
        let held = entries.map_or(0, |e| e.len() as u64) + self.crowd_of(object);
        held >= capacity && self.count(object) >= capacity
    }

    pub(super) fn expired(&self, id: ObjectId, o: &StateObject, key: &[u8]) -> bool {
        let stamps = self.exact.as_ref().map(|e| &e.handlers.stamps);
        let stamp = stamps.and_then(|s| s.get(&(id, key.to_vec())).copied());
        o.expire_after > 0 && stamp.is_some_and(|s| self.now().saturating_sub(s) >= o.expire_after)
    }

    /// The value of a live entry.
    fn live(&mut self, id: ObjectId, o: &StateObject, key: &[u8]) -> Option<u64> {
        if self.expired(id, o, key) && o.kind.name == "map" {
            self.drop_entry(id, key);
        }
        let found = self.exact.as_ref()?.maps.get(&id)?.get(key).copied();
        found.filter(|_| !self.expired(id, o, key))
    }

    fn drop_entry(&mut self, id: ObjectId, key: &[u8]) {
        if let Some(exact) = &mut self.exact {
            exact.maps.get_mut(&id).and_then(|m| m.remove(key));
            exact.handlers.stamps.remove(&(id, key.to_vec()));
        }
    }

    fn refresh(&mut self, id: ObjectId, key: &[u8]) {
        let now = self.now();
        if let Some(exact) = &mut self.exact {
            let stamp = exact.handlers.stamps.entry((id, key.to_vec()));
            let stamp = stamp.or_insert(now);
            *stamp = now.max(*stamp);
        }
    }

    /// Writes a value where it is, or in a new place; the entry's age is 0.
    pub(super) fn put_value(&mut self, id: ObjectId, key: &[u8], value: &[u8]) -> u64 {
        self.refresh(id, key);
        let maps = self.exact.as_ref().map(|e| &e.maps);
        let known = maps.and_then(|m| m.get(&id)?.get(key).copied());
        if let Some(at) = known {
            if let Some(m) = self.memory.get_mut(&(at / APART)) {
                m.bytes = value.to_vec();
            }
            return at;
        }
        let at = self.map(value.to_vec(), true, true);
        let maps = self.exact.as_mut().map(|e| &mut e.maps);
        maps.and_then(|m| m.get_mut(&id)?.insert(key.to_vec(), at));
        at
    }

    /// A call on one of these objects.
    pub(super) fn on_handlers(
        &mut self,
        helper: &str,
        id: ObjectId,
        o: &StateObject,
        a: [u64; 5],
    ) -> Result<u64, Violation> {
        match helper {
            "map_get" | "map_refresh" | "map_put" | "map_delete" => {
                let key = self.bytes_at(a[1], o.key_bytes)?;
                let found = self.live(id, o, &key);
                match helper {
                    "map_get" => Ok(found.unwrap_or(0)),
                    "map_refresh" => {
                        if found.is_some() {
                            self.refresh(id, &key);
                        }
                        Ok(found.unwrap_or(0))
                    }
                    "map_delete" => {
                        if found.is_some() {
                            self.drop_entry(id, &key);
                        }
                        Ok(u64::from(found.is_some()))
                    }
                    _ => {
                        let value = self.bytes_at(a[2], o.value_bytes)?;
                        if found.is_none() && !self.has_room(id, o) {
                            return Ok(0);
                        }
                        Ok(self.put_value(id, &key, &value))
                    }
                }
            }
            "vector_at" => {
                let Some(key) = index_key(a[1], o.key_bytes).filter(|_| a[1] < o.capacity) else {
                    return Ok(0);
                };
                match self.live(id, o, &key) {
                    Some(at) => Ok(at),
                    None => Ok(self.put_value(id, &key, &vec![0; o.value_bytes as usize])),
                }
            }
            "allocator_lease" => {
                let value = self.bytes_at(a[1], o.value_bytes)?;
                let Some(number) = self.claim(id, o) else {
                    return Ok(u64::MAX);
                };
                let Some(key) = index_key(o.first + number, o.key_bytes) else {
                    return violation("a lease that its keys have no room for");
                };
                self.drop_entry(id, &key);
                self.put_value(id, &key, &value);
                Ok(o.first + number)
            }
            "allocator_get" | "allocator_refresh" | "allocator_free" => {
                let Some(key) = index_key(a[1], o.key_bytes) else {
                    return Ok(0);
                };
                let found = self.live(id, o, &key);
                match helper {
                    "allocator_get" => {}
                    "allocator_refresh" if found.is_some() => self.refresh(id, &key),
                    "allocator_free" if found.is_some() => {
                        self.free(id, &key);
                        return Ok(1);
                    }
                    _ => {}
                }
                Ok(found.unwrap_or(0))
            }
            "sketch_count" | "sketch_add" => {
                let key = self.bytes_at(a[1], o.key_bytes)?;
                let window = self.now().checked_div(o.window).unwrap_or(0);
                let Some(exact) = &mut self.exact else {
                    return Ok(0);
                };
                let sum = exact.handlers.sums.entry((id, key)).or_default();
                // Time that went back counts in the newest window.
                if window > sum.0 {
                    *sum = (window, 0);
                }
                if helper == "sketch_add" {
                    let amount = u32::try_from(a[2]).unwrap_or(u32::MAX);
                    sum.1 = sum.1.saturating_add(amount);
                }
                Ok(u64::from(sum.1))
            }
            other => violation(format!("{other} has no exact meaning here")),
        }
    }

    /// Whether another entry fits; what has expired makes room.
    fn has_room(&mut self, id: ObjectId, o: &StateObject) -> bool {
        let held = |m: &Self| {
            let entries = m.exact.as_ref().and_then(|e| e.maps.get(&id));
            entries.map_or(0, |e| e.len() as u64) + m.crowd_of(id)
        };
        if held(self) >= o.capacity {
            let maps = self.exact.as_ref().and_then(|e| e.maps.get(&id));
            let keys: Vec<Vec<u8>> = maps.into_iter().flat_map(|m| m.keys().cloned()).collect();
            for key in keys
                .iter()
                .filter(|key| self.expired(id, o, key))
                .collect::<Vec<_>>()
            {
                self.drop_entry(id, key);
            }
        }
        held(self) < o.capacity
    }

    /// The next number of an allocator, from 0 (fastpath/state/allocator.h).
    fn claim(&mut self, id: ObjectId, o: &StateObject) -> Option<u64> {
        if self.crowd_of(id) > 0 {
            return None;
        }
        let over = (self.exact.as_ref()?.maps.get(&id)?.keys())
            .filter(|key| self.expired(id, o, key))
            .filter_map(|key| {
                let number = key.iter().rev().fold(0, |n, b| n << 8 | u64::from(*b));
                let stamp = *self
                    .exact
                    .as_ref()?
                    .handlers
                    .stamps
                    .get(&(id, key.clone()))?;
                Some((stamp.saturating_add(o.expire_after), number - o.first))
            })
            .min();
        let exact = self.exact.as_mut()?;
        let leases = exact.handlers.leases.entry(id).or_default();
        if leases.fresh < o.capacity {
            leases.fresh += 1;
            return Some(leases.fresh - 1);
        }
        let freed = leases.freed.front().copied();
        match (over, freed) {
            (Some((due, number)), Some((first, since))) if (due, number) < (since, first) => {
                Some(number)
            }
            (Some((_, number)), None) => Some(number),
            (_, freed) => {
                leases.freed.pop_front();
                freed.map(|f| f.0)
            }
        }
    }
}
