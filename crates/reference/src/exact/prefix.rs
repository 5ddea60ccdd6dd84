//! Prefix tables: an address is looked up with each length, from the longest on.

use millrace_object::program::{ObjectId, StateObject};

use super::super::{APART, Machine, Violation, violation};
use super::{Asked, EEXIST, EINVAL, ENOENT, ENOSPC, error};

/// Bits of a key, as its first four bytes say.
fn bits(key: &[u8]) -> usize {
    let length = key.first_chunk().copied().unwrap_or_default();
    u32::from_le_bytes(length) as usize
}

/// The key with the bits beyond its length zero: such keys are equal.
pub(in super::super) fn masked(key: &[u8]) -> Vec<u8> {
    let bits = bits(key);
    let keep = |(i, byte): (usize, &u8)| match i.checked_sub(4) {
        None => *byte,
        Some(i) => {
            let kept = bits.saturating_sub(8 * i).min(8);
            byte & !(0xff_u16 >> kept) as u8
        }
    };
    key.iter().enumerate().map(keep).collect()
}

/// An address and how many of its bits count, as prefixes are stored.
pub(in super::super) fn prefixed(bits: u64, address: &[u8]) -> Vec<u8> {
    masked(&[&(bits as u32).to_le_bytes(), address].concat())
}

/// A whole address as a prefix.
pub(super) fn whole(address: &[u8]) -> Vec<u8> {
    prefixed(8 * address.len() as u64, address)
}

/// A key of a handler's table as it comes from outside: a prefix behind its number of bits, or a whole address.
pub(super) fn outside(object: &StateObject, key: &[u8]) -> Vec<u8> {
    match key.len() == object.key_bytes as usize {
        true => whole(key),
        false => masked(key),
    }
}

impl Machine<'_> {
    /// The value of the longest prefix that covers a key and is no longer than it.
    pub(super) fn longest(&self, id: ObjectId, key: &[u8]) -> Option<u64> {
        let stored = self.exact.as_ref().and_then(|e| e.maps.get(&id))?;
        let address = key.get(4..).filter(|_| !stored.is_empty())?;
        let most = bits(key).min(8 * address.len());
        let mut shorter = (0..=most as u64).rev();
        shorter.find_map(|bits| stored.get(&prefixed(bits, address)).copied())
    }

    pub(super) fn prefixes(
        &mut self,
        Asked { name, id, o, a }: Asked<'_>,
    ) -> Result<u64, Violation> {
        let key = self.bytes_at(a[1], o.key_bytes)?;
        let fits = bits(&key) <= 8 * (key.len() - 4);
        let crowd = self.crowd_of(id);
        let exact = self.exact.as_ref();
        let Some(stored) = exact.and_then(|e| e.maps.get(&id)) else {
            return violation("no such table");
        };
        let own = stored.get(&masked(&key)).copied();
        match name {
            "map_lookup_elem" if !fits => Ok(0),
            "map_lookup_elem" => Ok(self.longest(id, &key).unwrap_or(0)),
            "map_update_elem" => {
                let full = stored.len() as u64 + crowd >= o.capacity;
                let value = self.bytes_at(a[2], o.value_bytes)?;
                match (a[3], own) {
                    (3.., _) => return Ok(error(EINVAL)),
                    _ if !fits => return Ok(error(EINVAL)),
                    (1, Some(_)) => return Ok(error(EEXIST)),
                    (2, None) => return Ok(error(ENOENT)),
                    (_, Some(at)) => {
                        if let Some(m) = self.memory.get_mut(&(at / APART)) {
                            m.bytes = value;
                        }
                    }
                    (_, None) if full => return Ok(error(ENOSPC)),
                    (_, None) => {
                        self.set(id, &key, &value);
                    }
                }
                Ok(0)
            }
            "map_delete_elem" if !fits => Ok(error(EINVAL)),
            "map_delete_elem" => {
                let maps = self.exact.as_mut().and_then(|e| e.maps.get_mut(&id));
                let gone = maps.and_then(|m| m.remove(&masked(&key)));
                Ok(if gone.is_some() { 0 } else { error(ENOENT) })
            }
            other => violation(format!("{other} of a prefix table")),
        }
    }
}
