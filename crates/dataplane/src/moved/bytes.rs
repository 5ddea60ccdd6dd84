//! Entries of a bucket as bytes, for another machine.
//!
//! An entry is eight numbers of 8 bytes, its key and its value. Numbers are little-endian, as those in values are: machines of a cluster are of
//! one architecture.
//!
//! | number | what |
//! | --- | --- |
//! | 0 | the object, by its index in the module, times 256; and 1 where this is a number that nobody has leased |
//! | 1 | bytes of the key, times 2^32, and bytes of the value |
//! | 2 | when it was last refreshed, ns since the epoch; 0: it does not expire |
//! | 3 to 7 | its place, its bound, the function of its timer, when that is due, and its place in the order of timers |

use super::Contents;
use crate::module::{Module, Rest, Stamped};

const HEAD: usize = 64;
const FREE: u64 = 1;

/// Why bytes are not the entries of a bucket.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Unread {
    /// They end within an entry.
    #[error("the entries end within one")]
    Short,
    /// An entry is of no object that has any.
    #[error("an entry is of object {object}, which has none that move")]
    Object {
        /// its index
        object: u64,
    },
    /// A key or a value has another length than the object's.
    #[error("an entry of object {object} has a key or a value of another length")]
    Length {
        /// its index
        object: usize,
    },
    /// An entry is of another bucket.
    #[error("an entry of object {object} is of another bucket")]
    Bucket {
        /// its index
        object: usize,
    },
    /// A number is out of range.
    #[error("an entry of object {object} has a number that is out of range")]
    Range {
        /// its index
        object: usize,
    },
}

/// As bytes.
#[must_use]
pub fn to_bytes(entries: &[(usize, Stamped)]) -> Vec<u8> {
    let of = |(_, e): &(usize, Stamped)| HEAD + e.key.len() + e.value.len();
    let mut bytes = Vec::with_capacity(entries.iter().map(of).sum());
    for (object, entry) in entries {
        let lengths = (entry.key.len() as u64) << 32 | entry.value.len() as u64;
        let free = u64::from(entry.rest.free) * FREE;
        let head = (*object as u64) << 8 | free;
        let [place, bound, callback, due, order] = entry.rest.numbers();
        for number in [
            head,
            lengths,
            entry.stamp,
            place,
            bound,
            callback,
            due,
            order,
        ] {
            bytes.extend_from_slice(&number.to_le_bytes());
        }
        bytes.extend_from_slice(&entry.key);
        bytes.extend_from_slice(&entry.value);
    }
    bytes
}

/// The entries of a bucket from bytes that came from outside.
///
/// # Errors
/// They are not entries that this bucket of this module may have.
pub fn from_bytes(
    mut bytes: &[u8],
    bucket: u32,
    (module, contents): (&Module, &Contents),
) -> Result<Vec<(usize, Stamped)>, Unread> {
    let mut all = Vec::new();
    while !bytes.is_empty() {
        let mut numbers = [0_u64; HEAD / 8];
        for number in &mut numbers {
            let (first, rest) = bytes.split_first_chunk().ok_or(Unread::Short)?;
            *number = u64::from_le_bytes(*first);
            bytes = rest;
        }
        let [head, lengths, stamp, place, bound, callback, due, order] = numbers;
        let (found, free) = (head >> 8, head & 0xff == FREE);
        let object = usize::try_from(found).map_err(|_| Unread::Object { object: found })?;
        let keyed = contents.tables.contains(&object) || contents.elements.contains(&object);
        let leases = contents.leases.contains(&object);
        let info = module.objects().get(object).filter(|_| keyed || leases);
        let info = info.ok_or(Unread::Object { object: found })?;
        let (key, value) = ((lengths >> 32) as usize, (lengths & 0xffff_ffff) as usize);
        if head & 0xff > FREE || free && !leases {
            return Err(Unread::Range { object });
        }
        // Of a free number neither is read.
        if !free && (key, value) != (info.key_bytes, info.value_bytes) {
            return Err(Unread::Length { object });
        }
        let (own, rest) = bytes.split_at_checked(key).ok_or(Unread::Short)?;
        let (content, rest) = rest.split_at_checked(value).ok_or(Unread::Short)?;
        bytes = rest;
        if keyed && contents.buckets.entry(object, own) != Some(bucket) {
            return Err(Unread::Bucket { object });
        }
        let numbers = [place, bound, callback, due, order];
        let rest = Rest::of_numbers(free, numbers).ok_or(Unread::Range { object })?;
        let entry = Stamped {
            key: own.to_vec(),
            value: content.to_vec(),
            stamp,
            rest,
        };
        all.push((object, entry));
    }
    Ok(all)
}
