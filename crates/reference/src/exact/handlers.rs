//! The handlers' own kinds of state (docs/dialect.md): maps whose entries expire, vectors, allocators, sketches,
//! prefix tables by address. Lists that are searched, where the fast path has heaps and tries.

use std::collections::BTreeMap;

use millrace_classify::Rules;
use millrace_object::contract::Holds;
use millrace_object::program::{ObjectId, StateObject};
use millrace_object::state::{Addressing, distributed};

use super::super::{APART, Machine, Violation, violation};
use super::{Asked, prefix};

const NONE: u64 = u64::MAX;

/// Data of these kinds beside their values.
#[derive(Default)]
pub(crate) struct Own {
    /// when an entry of a map was last refreshed
    pub(crate) stamps: BTreeMap<ObjectId, BTreeMap<Vec<u8>, u64>>,
    /// of those whose expiry is an event: the place of an entry in the order in which entries were put
    pub(crate) puts: BTreeMap<ObjectId, BTreeMap<Vec<u8>, u64>>,
    pub(in super::super) leases: BTreeMap<ObjectId, Leases>,
    /// by key: the window, and the sum in it
    pub(in super::super) counts: BTreeMap<ObjectId, BTreeMap<Vec<u8>, (u64, u64)>>,
    /// rules of classifiers
    pub(in super::super) rules: BTreeMap<ObjectId, Rules>,
}

/// The numbers of an allocator, from 0.
#[derive(Default)]
pub(in super::super) struct Leases {
    /// those that were ever leased: where the value is
    pub(in super::super) values: Vec<u64>,
    /// those that are leased, perhaps expired: the stamp
    pub(in super::super) leased: BTreeMap<usize, u64>,
    /// those that were given back, and when, in that order
    pub(in super::super) freed: Vec<(u64, usize)>,
}

/// Whether what was stamped then is over now. Where expiry is an event, what is there is not.
pub(super) fn over(o: &StateObject, stamp: u64, now: u64) -> bool {
    o.expire_after > 0 && o.expiry.is_none() && now >= stamp && now - stamp >= o.expire_after
}

/// CRC-32C of eight bytes, a bit at a time (RFC 3720, appendix B.4).
pub(super) fn crc32c(seed: u64, word: u64) -> u64 {
    let mut crc = word ^ u64::from(seed as u32);
    for _ in 0..64 {
        crc = crc >> 1 ^ if crc & 1 == 1 { 0x82f6_3b78 } else { 0 };
    }
    u64::from(crc as u32)
}

impl Machine<'_> {
    /// A call of one of the handlers' helpers that work on an object.
    pub(super) fn handlers(&mut self, asked: Asked<'_>) -> Result<u64, Violation> {
        let Asked { name, id, o, a } = asked;
        match (o.kind.holds, o.kind.addressing) {
            (Holds::Values, Addressing::Key) => self.aging(asked),
            _ if *o.kind == distributed::KIND => self.member(asked),
            (Holds::Values, Addressing::Index) if a[1] < o.capacity => {
                let key = super::index(o, a[1]);
                Ok(self.value_of(id, &key).unwrap_or(0))
            }
            (Holds::Values, Addressing::Index) => Ok(0),
            (Holds::Values, Addressing::Lease) => self.lease(asked),
            (Holds::Values, Addressing::Prefix) => self.address(asked),
            (Holds::Estimates, _) => self.count(asked),
            (Holds::Rules, _) => {
                let key = self.bytes_at(a[1], o.key_bytes)?;
                Ok(u64::from(self.class_of(id, &key)))
            }
            _ => violation(format!("{name} of a {}", o.kind.name)),
        }
    }

    /// The class of a key: that of the first rule that contains it.
    pub(super) fn class_of(&self, id: ObjectId, key: &[u8]) -> u32 {
        let rules = self.exact.as_ref().and_then(|e| e.own.rules.get(&id));
        rules.map_or(0, |r| r.scan(&r.key().split(key)))
    }

    /// Whether an entry of a map that expires is there now.
    pub(super) fn expired(&self, id: ObjectId, o: &StateObject, key: &[u8]) -> bool {
        let stamps = self.exact.as_ref().and_then(|e| e.own.stamps.get(&id));
        let stamp = stamps.and_then(|s| s.get(key));
        stamp.is_some_and(|stamp| over(o, *stamp, self.now()))
    }

    fn aging(&mut self, Asked { name, id, o, a }: Asked<'_>) -> Result<u64, Violation> {
        let now = self.now();
        let key = self.bytes_at(a[1], o.key_bytes)?;
        self.meet(id, o, &key);
        let crowd = self.crowd_of(id);
        let value = if name == "map_put" {
            self.bytes_at(a[2], o.value_bytes)?
        } else {
            Vec::new()
        };
        let Some(exact) = &mut self.exact else {
            return Ok(0);
        };
        let (entries, stamps) = (
            exact.maps.entry(id).or_default(),
            exact.own.stamps.entry(id).or_default(),
        );
        let gone = |stamp: &u64| over(o, *stamp, now);
        if stamps.get(&key).is_some_and(gone) {
            stamps.remove(&key);
            entries.remove(&key);
        }
        // What else has expired takes no room.
        let full = entries.len() as u64 + crowd >= o.capacity;
        if name == "map_put" && full && stamps.values().any(gone) {
            stamps.retain(|_, stamp| !gone(stamp));
            entries.retain(|key, _| stamps.contains_key(key));
        }
        let found = entries.get(&key).copied();
        match (name, found) {
            ("map_get", _) => {}
            ("map_refresh", Some(_)) => {
                stamps.entry(key).and_modify(|s| *s = now.max(*s));
            }
            ("map_delete", _) => {
                entries.remove(&key);
                stamps.remove(&key);
                if let Some(puts) = exact.own.puts.get_mut(&id) {
                    puts.remove(&key);
                }
                return Ok(u64::from(found.is_some()));
            }
            ("map_put", None) if entries.len() as u64 + crowd >= o.capacity => {}
            ("map_put", found) => {
                stamps.insert(key.clone(), now);
                if found.is_none() && o.expiry.is_some() {
                    let put = exact.clock.next_start();
                    exact
                        .own
                        .puts
                        .entry(id)
                        .or_default()
                        .insert(key.clone(), put);
                }
                if let Some(memory) = found.and_then(|at| self.memory.get_mut(&(at / APART))) {
                    memory.bytes = value;
                    return Ok(found.unwrap_or(0));
                }
                let at = self.map(value, true, true);
                let maps = self.exact.as_mut().and_then(|e| e.maps.get_mut(&id));
                maps.map(|m| m.insert(key, at));
                return Ok(at);
            }
            _ => {}
        }
        Ok(found.unwrap_or(0))
    }

    fn lease(&mut self, Asked { name, id, o, a }: Asked<'_>) -> Result<u64, Violation> {
        let now = self.now();
        let value = if name == "allocator_lease" {
            self.bytes_at(a[1], o.value_bytes)?
        } else {
            Vec::new()
        };
        if name == "allocator_lease" && self.crowd_of(id) > 0 {
            return Ok(NONE);
        }
        let fresh = self.map(vec![0; o.value_bytes as usize], true, true);
        let Some(exact) = &mut self.exact else {
            return Ok(0);
        };
        let leases = exact.own.leases.entry(id).or_default();
        if name == "allocator_lease" {
            let number = if (leases.values.len() as u64) < o.capacity {
                leases.values.push(fresh);
                leases.values.len() - 1
            } else {
                // Whichever became free first, of those given back and those whose lease is over.
                let ended = leases.leased.iter().filter(|(_, s)| over(o, **s, now));
                let ended = ended.map(|(n, s)| (s + o.expire_after, *n)).min();
                match (leases.freed.first().copied(), ended) {
                    (None, None) => return Ok(NONE),
                    (Some(freed), ended) if ended.is_none_or(|e| freed < e) => {
                        leases.freed.remove(0);
                        freed.1
                    }
                    (_, ended) => ended.map_or(0, |e| e.1),
                }
            };
            leases.leased.insert(number, now);
            let at = leases.values.get(number).copied().unwrap_or(0);
            if let Some(memory) = self.memory.get_mut(&(at / APART)) {
                memory.bytes = value;
            }
            return Ok(o.first + number as u64);
        }
        let number = usize::try_from(a[1].wrapping_sub(o.first)).unwrap_or(usize::MAX);
        let stamp = leases.leased.get(&number).copied();
        let Some(stamp) = stamp.filter(|s| !over(o, *s, now)) else {
            return Ok(0);
        };
        match name {
            "allocator_free" => {
                leases.leased.remove(&number);
                leases.freed.push((now, number));
                return Ok(1);
            }
            "allocator_refresh" => {
                leases.leased.insert(number, now.max(stamp));
            }
            _ => {}
        }
        Ok(leases.values.get(number).copied().unwrap_or(0))
    }

    /// The leased numbers of an allocator, in as many bytes as it says, with their values.
    pub(super) fn leased(&self, id: ObjectId, o: &StateObject) -> BTreeMap<Vec<u8>, Vec<u8>> {
        let now = self.now();
        let leases = self.exact.as_ref().and_then(|e| e.own.leases.get(&id));
        let entry = |l: &Leases, number: usize| {
            let at = l.values.get(number)?;
            let value = self.memory.get(&(at / APART))?.bytes.clone();
            Some((super::index(o, o.first + number as u64), value))
        };
        let mut all = BTreeMap::new();
        if let Some(leases) = leases {
            let there = leases.leased.iter().filter(|(_, s)| !over(o, **s, now));
            all.extend(there.filter_map(|(number, _)| entry(leases, *number)));
        }
        all
    }

    /// A sketch that never errs: exact counts, where the fast path's may lie above.
    fn count(&mut self, Asked { name, id, o, a }: Asked<'_>) -> Result<u64, Violation> {
        let now = self.now();
        let key = self.bytes_at(a[1], o.key_bytes)?;
        let window = now.checked_div(o.window).unwrap_or(0);
        let Some(exact) = &mut self.exact else {
            return Ok(0);
        };
        let counts = exact.own.counts.entry(id).or_default();
        let count = counts.entry(key).or_insert((window, 0));
        if count.0 != window {
            *count = (window, 0);
        }
        if name == "sketch_add" {
            let most = u64::from(u32::MAX);
            count.1 = (count.1 + a[2].min(most)).min(most);
        }
        Ok(count.1)
    }

    /// A member of numbers that all packets add to: one copy of them. A member that is not there is 0, and stays so.
    fn member(&mut self, Asked { name, id, o, a }: Asked<'_>) -> Result<u64, Violation> {
        let all = self.value_of(id, &super::index(o, 0));
        let Some(at) = all.filter(|_| a[1] < u64::from(o.value_bytes / 8)) else {
            return Ok(0);
        };
        let at = at + 8 * a[1];
        let bytes = self.bytes_at(at, 8)?;
        let was = u64::from_le_bytes(bytes.try_into().unwrap_or_default());
        let now = match name {
            "distributed_add" => was.wrapping_add(a[2]),
            "distributed_max" => was.max(a[2]),
            "distributed_or" => was | a[2],
            _ => return Ok(was),
        };
        self.put(at, &now.to_le_bytes())?;
        Ok(0)
    }

    /// A prefix table whose keys are addresses; lengths come apart.
    fn address(&mut self, Asked { name, id, o, a }: Asked<'_>) -> Result<u64, Violation> {
        let key = self.bytes_at(a[1], o.key_bytes)?;
        let all = 8 * u64::from(o.key_bytes);
        let crowd = self.crowd_of(id);
        match name {
            "lpm_get" => Ok(self.longest(id, &prefix::whole(&key)).unwrap_or(0)),
            "lpm_put" if a[2] <= all => {
                let key = prefix::prefixed(a[2], &key);
                let value = self.bytes_at(a[3], o.value_bytes)?;
                let entries = self.exact.as_ref().and_then(|e| e.maps.get(&id));
                let full = entries.is_some_and(|e| e.len() as u64 + crowd >= o.capacity);
                let found = entries.and_then(|e| e.get(&key)).copied();
                if let Some(memory) = found.and_then(|at| self.memory.get_mut(&(at / APART))) {
                    memory.bytes = value;
                    return Ok(found.unwrap_or(0));
                }
                if full {
                    return Ok(0);
                }
                let at = self.map(value, true, true);
                let maps = self.exact.as_mut().map(|e| e.maps.entry(id).or_default());
                maps.map(|m| m.insert(key, at));
                Ok(at)
            }
            "lpm_delete" if a[2] <= all => {
                let maps = self.exact.as_mut().and_then(|e| e.maps.get_mut(&id));
                let gone = maps.and_then(|m| m.remove(&prefix::prefixed(a[2], &key)));
                Ok(u64::from(gone.is_some()))
            }
            _ => Ok(0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn crc_of_rfc_3720() {
        // Appendix B.4: 32 bytes of zeros, complemented before and after, are 0x8a9136aa.
        let crc = (0..4).fold(0xffff_ffff, |crc, _| crc32c(crc, 0));
        assert_eq!(crc ^ 0xffff_ffff, 0x8a91_36aa);
    }
}
