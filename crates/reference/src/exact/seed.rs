//! State that is put there from outside, and looked at, for an execution that begins in the middle.

use millrace_object::contract::Holds;
use millrace_object::program::{ObjectId, StateObject};
use millrace_object::state::{lpm, lpm_trie};

use super::super::{APART, Machine};
use super::handlers::over;
use super::prefix;

/// The number that a key of an element or a lease is.
pub(super) fn number(key: &[u8]) -> u64 {
    let low = key.iter().take(8).rev();
    low.fold(0, |n, b| n << 8 | u64::from(*b))
}

impl Machine<'_> {
    /// Sets an entry of a map of the handlers, its age 0.
    pub(super) fn put_aging(&mut self, id: ObjectId, key: &[u8], value: &[u8]) {
        let now = self.now();
        let at = self.map(value.to_vec(), true, true);
        let event = (self.program.objects.get(id.0)).is_some_and(|o| o.expiry.is_some());
        if let Some(exact) = &mut self.exact {
            let stamps = exact.own.stamps.entry(id).or_default();
            stamps.insert(key.to_vec(), now);
            if event {
                let put = exact.clock.next_start();
                let puts = exact.own.puts.entry(id).or_default();
                puts.entry(key.to_vec()).or_insert(put);
            }
            exact.maps.entry(id).or_default().insert(key.to_vec(), at);
        }
    }

    /// Leases a number with this value, whether it is free or not: numbers below it that were never leased
    /// count as given back now, in their order.
    pub(super) fn put_lease(&mut self, id: ObjectId, o: &StateObject, key: &[u8], value: &[u8]) {
        let now = self.now();
        let at = number(key).checked_sub(o.first);
        let Some(at) = at.filter(|at| *at < o.capacity).map(|at| at as usize) else {
            return;
        };
        let known = |m: &Self| {
            let leases = m.exact.as_ref().and_then(|e| e.own.leases.get(&id));
            leases.map_or(0, |l| l.values.len())
        };
        for fresh in known(self)..=at {
            let region = self.map(vec![0; o.value_bytes as usize], true, true);
            if let Some(exact) = &mut self.exact {
                let leases = exact.own.leases.entry(id).or_default();
                leases.values.push(region);
                leases.freed.push((now, fresh));
            }
        }
        let Some(exact) = &mut self.exact else { return };
        let leases = exact.own.leases.entry(id).or_default();
        leases.freed.retain(|(_, n)| *n != at);
        leases.leased.insert(at, now);
        let region = leases.values.get(at).copied().unwrap_or(0);
        if let Some(memory) = self.memory.get_mut(&(region / APART)) {
            memory.bytes = value.to_vec();
        }
    }

    /// Gives a leased number back.
    pub fn free(&mut self, object: ObjectId, key: &[u8]) {
        let now = self.now();
        let first = self.declaration(object).map_or(0, |o| o.first);
        let leases = self
            .exact
            .as_mut()
            .and_then(|e| e.own.leases.get_mut(&object));
        if let (Some(leases), Some(at)) = (leases, number(key).checked_sub(first))
            && leases.leased.remove(&(at as usize)).is_some()
        {
            leases.freed.push((now, at as usize));
        }
    }

    /// Gives a classifier its rules.
    pub fn set_rules(&mut self, object: ObjectId, rules: millrace_classify::Rules) {
        if let Some(exact) = &mut self.exact {
            exact.own.rules.insert(object, rules);
        }
    }

    /// Says what the estimate of a key is.
    pub fn estimate(&mut self, object: ObjectId, key: &[u8], sum: u32) {
        let window = self.declaration(object).map_or(0, |o| o.window);
        let window = self.now().checked_div(window).unwrap_or(0);
        if let Some(exact) = &mut self.exact {
            let counts = exact.own.counts.entry(object).or_default();
            counts.insert(key.to_vec(), (window, u64::from(sum)));
        }
    }

    /// The value under a key as it is now; none if there is no entry, or it has expired. Of a sketch that is
    /// the estimate, of a prefix table that of the longest prefix that covers the key. Unlike a lookup this changes nothing.
    #[must_use]
    pub fn peek(&self, object: ObjectId, key: &[u8]) -> Option<Vec<u8>> {
        let o = self.declaration(object)?;
        let exact = self.exact.as_ref()?;
        let bytes = |at: &u64| self.memory.get(&(at / APART)).map(|m| m.bytes.clone());
        match o.kind.holds {
            Holds::Variables => return self.value(object).map(<[u8]>::to_vec),
            Holds::Estimates => {
                let window = self.now().checked_div(o.window).unwrap_or(0);
                let count = exact.own.counts.get(&object).and_then(|c| c.get(key));
                let sum = count.filter(|c| c.0 == window).map_or(0, |c| c.1 as u32);
                return (o.value_bytes == 4).then(|| sum.to_le_bytes().to_vec());
            }
            Holds::Rules => return Some(self.class_of(object, key).to_le_bytes().to_vec()),
            // As emitted code numbers maps: by their places from 1, those that the host made as MAPS_OWN (fastpath/state/maps.h).
            Holds::Maps => {
                let map = self.inner(object, key)?;
                let named = map.0 < self.program.objects.len();
                let number = if named { map.0 as u32 + 1 } else { u32::MAX };
                return Some(number.to_le_bytes().to_vec());
            }
            Holds::Values if o.kind.leases() => {
                let leases = exact.own.leases.get(&object)?;
                let at = number(key).checked_sub(o.first)? as usize;
                let stamp = leases.leased.get(&at)?;
                let live = !over(o, *stamp, self.now());
                return leases.values.get(at).filter(|_| live).and_then(bytes);
            }
            Holds::Values if *o.kind == lpm::KIND => {
                return self
                    .longest(object, &prefix::outside(o, key))
                    .as_ref()
                    .and_then(bytes);
            }
            _ => {}
        }
        if *o.kind == lpm_trie::KIND {
            return self.longest(object, key).as_ref().and_then(bytes);
        }
        match exact.maps.get(&object)?.get(key) {
            Some(at) => bytes(at).filter(|_| !self.expired(object, o, key)),
            None => {
                let there = (super::is_array(o) && number(key) < o.capacity)
                    || self.is_crowded(object, o, key);
                there.then(|| vec![0; o.value_bytes as usize])
            }
        }
    }

    /// Whether a call on this key of a prefix table would change an entry that is there: that of the very prefix, not of a
    /// shorter one that covers it.
    pub(crate) fn has_prefix(&self, object: ObjectId, key: &[u8]) -> bool {
        let exact = self.exact.as_ref();
        let stored = exact.and_then(|e| e.maps.get(&object));
        // Keys that differ in bits beyond their length are one prefix.
        stored.is_some_and(|s| s.contains_key(&prefix::masked(key)))
    }

    /// Number of live entries of an object, those of no key among them.
    #[must_use]
    pub fn how_many(&self, object: ObjectId) -> u64 {
        let Some(o) = self.declaration(object) else {
            return 0;
        };
        let own = self.exact.as_ref().map(|e| &e.own);
        let stamps = own.and_then(|own| own.stamps.get(&object));
        let live = match (o.kind.leases(), stamps) {
            (true, _) => {
                let (now, leases) = (self.now(), own.and_then(|own| own.leases.get(&object)));
                let stamps = leases.into_iter().flat_map(|l| l.leased.values());
                stamps.filter(|s| !over(o, **s, now)).count()
            }
            (_, Some(stamps)) => {
                let now = self.now();
                stamps.values().filter(|s| !over(o, **s, now)).count()
            }
            _ => {
                let entries = self.exact.as_ref().and_then(|e| e.maps.get(&object));
                entries.map_or(0, std::collections::BTreeMap::len)
            }
        };
        live as u64 + self.crowd_of(object)
    }

    /// Whether no further entry fits.
    #[must_use]
    pub fn is_full(&self, object: ObjectId) -> bool {
        let capacity = self.declaration(object).map_or(u64::MAX, |o| o.capacity);
        let entries = self.exact.as_ref().and_then(|e| {
            let leases = e.own.leases.get(&object).map(|l| l.leased.len());
            leases.or_else(|| e.maps.get(&object).map(std::collections::BTreeMap::len))
        });
        // Those that have expired are counted only where it matters.
        let most = entries.map_or(0, |e| e as u64) + self.crowd_of(object);
        most >= capacity && self.how_many(object) >= capacity
    }
}
