//! Maps with keys: what lookups, updates and deletions do, and what the host sees.

use std::collections::{BTreeMap, VecDeque};

use millrace_object::program::{ObjectId, StateObject};
use millrace_object::state::{lpm, lpm_trie, map};

use super::{Asked, E2BIG, EEXIST, EINVAL, ENOENT, Machine, Violation, error, is_array, prefix};
use crate::APART;

const EAGAIN: i64 = 11;

/// A record's header in a ring buffer, bytes.
const HEADER: u64 = 8;

/// Records are shorter.
const LONGEST: u64 = 1 << 30;

impl Machine<'_> {
    /// Sets an entry from outside, as the host does; false if there is no such map.
    pub fn set(&mut self, object: ObjectId, key: &[u8], value: &[u8]) -> bool {
        let Some(declaration) = self.declaration(object) else {
            return false;
        };
        let key = match declaration.kind {
            kind if *kind == lpm_trie::KIND => prefix::masked(key),
            kind if *kind == lpm::KIND => prefix::outside(declaration, key),
            _ => key.to_vec(),
        };
        if declaration.kind.leases() {
            self.put_lease(object, declaration, &key, value);
            return true;
        }
        if *declaration.kind == map::KIND {
            self.put_aging(object, &key, value);
            return true;
        }
        if declaration.kind.evicts {
            return self.put_entry(object, declaration, key, value.to_vec(), 0) == 0;
        }
        let at = self.map(value.to_vec(), true, true);
        self.timer_as_new(object, at);
        let maps = self.exact.as_mut().and_then(|e| e.maps.get_mut(&object));
        maps.map(|m| m.insert(key, at)).is_some()
    }

    /// The entries of a map by key; the whole value of a global under the empty key.
    #[must_use]
    pub fn entries(&self, object: ObjectId) -> BTreeMap<Vec<u8>, Vec<u8>> {
        self.listed(object).into_iter().collect()
    }

    /// The entries of a map as control lists them.
    #[must_use]
    pub fn listed(&self, object: ObjectId) -> Vec<(Vec<u8>, Vec<u8>)> {
        let declaration = self.declaration(object);
        if declaration.is_some_and(|o| o.kind.is_global()) {
            let value = self.value(object).unwrap_or_default();
            return vec![(Vec::new(), value.to_vec())];
        }
        if let Some(o) = declaration.filter(|o| o.kind.leases()) {
            return self.leased(object, o).into_iter().collect();
        }
        let entries = self.exact.as_ref().and_then(|e| e.maps.get(&object));
        let value = |at: &u64| match self.memory.get(&(at / APART)) {
            Some(m) => m.bytes.clone(),
            None => Vec::new(),
        };
        let there = entries.into_iter().flatten();
        let there =
            there.filter(|(key, _)| declaration.is_none_or(|o| !self.expired(object, o, key)));
        let there = there.map(|(key, at)| (key.clone(), value(at)));
        let Some(array) = declaration.filter(|o| is_array(o)) else {
            return there.collect();
        };
        let zero = vec![0; array.value_bytes as usize];
        let keys = (0..array.capacity).map(|i| super::index(array, i));
        let mut all: BTreeMap<_, _> = keys.map(|key| (key, zero.clone())).collect();
        all.extend(there);
        all.into_iter().collect()
    }

    /// The keys of a map, an array's in their order.
    pub(crate) fn exact_keys(&mut self, id: ObjectId) -> Option<VecDeque<Vec<u8>>> {
        if let Some(o) = self.declaration(id).filter(|o| is_array(o)) {
            return Some(
                (0..o.capacity)
                    .map(|i| (i as u32).to_le_bytes().to_vec())
                    .collect(),
            );
        }
        self.meet_all(id);
        let exact = self.exact.as_ref()?;
        let mut keys: Vec<Vec<u8>> = exact.maps.get(&id)?.keys().cloned().collect();
        // Little-endian numbers, read from their last byte.
        keys.sort_by(|a, b| a.iter().rev().cmp(b.iter().rev()));
        if let Some(order) = exact.orders.get(&id) {
            let places: BTreeMap<_, _> = order.iter().zip(0..).collect();
            keys.sort_by_key(|key| places.get(key).copied().unwrap_or(usize::MAX));
        }
        Some(keys.into())
    }

    /// Says in which order the entries of a map are visited, as another implementation has them; others come behind
    /// these, in the order of their keys.
    pub fn visited_in(&mut self, object: ObjectId, keys: Vec<Vec<u8>>) {
        if let Some(exact) = &mut self.exact {
            exact.orders.insert(object, keys);
        }
    }

    /// Address of a key's value, if the key is there.
    pub(crate) fn value_of(&mut self, id: ObjectId, key: &[u8]) -> Option<u64> {
        let Some(exact) = &self.exact else {
            return self.values.get(&id).copied();
        };
        let found = exact.maps.get(&id)?.get(key).copied();
        let array = self.declaration(id).filter(|o| is_array(o));
        match (found, array) {
            (None, Some(o)) => self.element(id, o, key),
            (found, _) => found,
        }
    }

    /// An element of an array that nobody has asked for before.
    fn element(&mut self, id: ObjectId, o: &StateObject, key: &[u8]) -> Option<u64> {
        let number = key
            .iter()
            .rev()
            .try_fold(0_u64, |n, b| n.checked_mul(256)?.checked_add(u64::from(*b)));
        if number.is_none_or(|n| n >= o.capacity) {
            return None;
        }
        let at = self.map(vec![0; o.value_bytes as usize], true, true);
        self.forbid_timer(o, at);
        let map = self.exact.as_mut()?.maps.get_mut(&id)?;
        map.insert(key.to_vec(), at);
        Some(at)
    }

    /// A call on an entry.
    pub(super) fn keyed(&mut self, Asked { name, id, o, a }: Asked<'_>) -> Result<u64, Violation> {
        let key = self.bytes_at(a[1], o.key_bytes)?;
        self.meet(id, o, &key);
        match name {
            "map_update_elem" => {
                let value = self.bytes_at(a[2], o.value_bytes)?;
                Ok(self.put_entry(id, o, key, value, a[3]))
            }
            "map_delete_elem" if is_array(o) => Ok(error(EINVAL)),
            "map_delete_elem" => {
                let Some(exact) = &mut self.exact else {
                    return Ok(error(ENOENT));
                };
                // The region stays: pointers from before show the old value.
                let gone = exact.maps.get_mut(&id).and_then(|m| m.remove(&key));
                if let Some(clock) = exact.clocks.get_mut(&id) {
                    clock.removed(&key);
                }
                if let Some(at) = gone {
                    self.timer_as_new(id, at);
                }
                Ok(if gone.is_some() { 0 } else { error(ENOENT) })
            }
            _ if o.shape().is_some() => Ok(self.inner(id, &key).map_or(0, Self::pointer)),
            // One thread runs, on CPU 0.
            "map_lookup_percpu_elem" if a[2] as u32 != 0 => Ok(0),
            _ => {
                let found = self.value_of(id, &key);
                let clock = self.exact.as_mut().and_then(|e| e.clocks.get_mut(&id));
                if let Some(clock) = clock.filter(|_| found.is_some()) {
                    clock.used(&key);
                }
                Ok(found.unwrap_or(0))
            }
        }
    }

    fn put_entry(
        &mut self,
        id: ObjectId,
        o: &StateObject,
        key: Vec<u8>,
        value: Vec<u8>,
        flags: u64,
    ) -> u64 {
        let found = self.value_of(id, &key);
        let entries = self.exact.as_ref().and_then(|e| e.maps.get(&id));
        let crowd = self.crowd_of(id);
        let full = entries.is_some_and(|e| e.len() as u64 + crowd >= o.capacity);
        match (flags, found) {
            (3.., _) => return error(EINVAL),
            (_, None) if is_array(o) => return error(E2BIG),
            (1, Some(_)) => return error(EEXIST),
            (2, None) => return error(ENOENT),
            (_, None) if full && !o.kind.evicts => return error(E2BIG),
            _ => {}
        }
        let Some(exact) = &mut self.exact else {
            return 0;
        };
        let mut place = found;
        if o.kind.evicts {
            let clock = exact.clocks.entry(id).or_default();
            match found {
                Some(_) => clock.used(&key),
                // Pointers to what goes show what takes its place.
                None => {
                    let evicted = clock.inserted(&key, o.capacity);
                    let map = exact.maps.get_mut(&id);
                    place = evicted.and_then(|key| map?.remove(&key));
                }
            }
        }
        let at = match place {
            Some(at) => {
                if let Some(m) = self.memory.get_mut(&(at / APART)) {
                    m.bytes = value;
                }
                at
            }
            None => self.map(value, true, true),
        };
        self.timer_as_new(id, at);
        let map = self.exact.as_mut().and_then(|e| e.maps.get_mut(&id));
        map.map(|m| m.insert(key, at));
        0
    }

    /// A record of this many bytes takes its part of a ring buffer.
    pub(super) fn produce(&mut self, id: ObjectId, length: u64) {
        if let Some(exact) = &mut self.exact {
            let produced = exact.produced.entry(id).or_default();
            produced.1 += (HEADER + length).next_multiple_of(8);
        }
    }

    /// `bpf_ringbuf_query`.
    pub(super) fn query(&self, id: ObjectId, o: &StateObject, what: u64) -> u64 {
        let produced = self.exact.as_ref().and_then(|e| e.produced.get(&id));
        let (consumer, producer) = produced.copied().unwrap_or_default();
        match what {
            0 => producer - consumer,
            1 => o.capacity,
            2 => consumer,
            3 => producer,
            _ => 0,
        }
    }

    /// Submits a record of these bytes. Buffers are drained after each packet, and a program writes little of
    /// one.
    pub(super) fn output(
        &mut self,
        id: ObjectId,
        o: &StateObject,
        bytes: Vec<u8>,
        flags: u64,
    ) -> u64 {
        let length = bytes.len() as u64;
        if flags & !3 != 0 {
            return error(EINVAL);
        }
        if length >= LONGEST {
            return error(E2BIG);
        }
        if (HEADER + length).next_multiple_of(8) >= o.capacity || self.crowd_of(id) > 0 {
            return error(EAGAIN);
        }
        self.produce(id, length);
        // The address keeps the order among records; nobody has it.
        let at = self.map(Vec::new(), true, false);
        self.memory.remove(&(at / APART));
        if let Some(exact) = &mut self.exact {
            exact.submitted.insert(at, (id, bytes));
        }
        0
    }
}
