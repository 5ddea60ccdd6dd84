//! Control of state objects between bursts: counting, reading, writing, listing, taking records.

use std::borrow::Cow;
use std::ffi::c_void;

use millrace_object::state::lpm;

use super::instance::errno;
use super::{Instance, ModuleError, ObjectInfo, abi};

/// One record that a program left in a ring buffer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// index of the object
    pub object: usize,
    /// its content
    pub bytes: Vec<u8>,
}

/// An entry: its key and its value.
pub type KeyValue = (Vec<u8>, Vec<u8>);

impl Instance {
    /// How many live entries object `index` has at `now` (ns); none when it cannot be counted.
    #[must_use]
    pub fn count(&mut self, index: usize, now: u64) -> Option<u64> {
        let count = self.module.object_table().get(index)?.count?;
        // SAFETY: a control function of this module on its own created instance.
        Some(unsafe { count(self.memory.as_ptr(), now) })
    }

    /// How many insertions into object `index` found every place taken: they were refused, or took the place of
    /// another entry. None where that is not counted.
    #[must_use]
    pub fn full(&mut self, index: usize) -> Option<u64> {
        let full = self.module.object_table().get(index)?.full?;
        // SAFETY: a control function of this module on its own created instance.
        Some(unsafe { full(self.memory.as_ptr(), 0) })
    }

    /// How many places of object `index` are taken, in constant time: live entries, and those that have expired and have
    /// not been reclaimed yet. None where that is not kept.
    #[must_use]
    pub fn used(&mut self, index: usize) -> Option<u64> {
        let used = self.module.object_table().get(index)?.used?;
        // SAFETY: a control function of this module on its own created instance.
        Some(unsafe { used(self.memory.as_ptr(), 0) })
    }

    /// Reads the value under `key`; none when there is no such entry.
    ///
    /// # Errors
    /// [`ModuleError::Control`] when the object has no such function, the key's length is wrong, or
    /// the function fails.
    pub fn get(
        &mut self,
        index: usize,
        key: &[u8],
        now: u64,
    ) -> Result<Option<Vec<u8>>, ModuleError> {
        let mut value = Vec::new();
        let there = self.find(index, key, now, &mut value)?;
        Ok(there.then_some(value))
    }

    /// The same into a buffer that is used again; whether there is such an entry.
    ///
    /// # Errors
    /// As [`Self::get`].
    pub fn find(
        &mut self,
        index: usize,
        key: &[u8],
        now: u64,
        value: &mut Vec<u8>,
    ) -> Result<bool, ModuleError> {
        let (info, object) = self.object(index, "get")?;
        let get = object.get.ok_or_else(|| missing(info, "get"))?;
        let key = &*whole_prefix(info, key);
        right_length(info, "get", key.len(), info.control_key_bytes())?;
        value.clear();
        value.resize(info.value_bytes.max(1), 0);
        // SAFETY: key and value have the lengths the object declares.
        let result = unsafe { get(self.memory.as_ptr(), key.as_ptr(), value.as_mut_ptr(), now) };
        value.truncate(info.value_bytes);
        match result {
            0 => Ok(true),
            e if e == -libc::ENOENT => Ok(false),
            e => Err(control(info, "get", errno(e))),
        }
    }

    /// Writes `value` under `key`.
    ///
    /// # Errors
    /// As [`Self::get`], and when the object is full.
    pub fn set(
        &mut self,
        index: usize,
        key: &[u8],
        value: &[u8],
        now: u64,
    ) -> Result<(), ModuleError> {
        let (info, object) = self.object(index, "set")?;
        let set = object.set.ok_or_else(|| missing(info, "set"))?;
        let key = &*whole_prefix(info, key);
        right_length(info, "set", key.len(), info.control_key_bytes())?;
        right_length(info, "set", value.len(), info.value_bytes)?;
        // SAFETY: key and value have the lengths the object declares.
        match unsafe { set(self.memory.as_ptr(), key.as_ptr(), value.as_ptr(), now) } {
            0 => Ok(()),
            e if e == -libc::E2BIG || e == -libc::ENOSPC => {
                let full = format!("it holds {} entries and no more", info.capacity);
                Err(control(info, "set", full))
            }
            e => Err(control(info, "set", errno(e))),
        }
    }

    /// Removes the entry under `key`; false when there was none.
    ///
    /// # Errors
    /// As [`Self::get`].
    pub fn remove(&mut self, index: usize, key: &[u8], now: u64) -> Result<bool, ModuleError> {
        let (info, object) = self.object(index, "remove")?;
        let remove = object.remove.ok_or_else(|| missing(info, "remove"))?;
        let key = &*whole_prefix(info, key);
        right_length(info, "remove", key.len(), info.control_key_bytes())?;
        // SAFETY: the key has the length the object declares.
        match unsafe { remove(self.memory.as_ptr(), key.as_ptr(), now) } {
            0 => Ok(true),
            e if e == -libc::ENOENT => Ok(false),
            e => Err(control(info, "remove", errno(e))),
        }
    }

    /// All live entries, at most `limit`, as (key, value), in an order of the object's own.
    ///
    /// # Errors
    /// As [`Self::get`].
    pub fn entries(
        &mut self,
        index: usize,
        limit: usize,
        now: u64,
    ) -> Result<Vec<KeyValue>, ModuleError> {
        self.page(index, &mut 0, limit, now)
    }

    /// Live entries from `cursor` on, at most `limit`, as [`Self::entries`]; moves the cursor, which
    /// starts at 0, behind them. Fewer than `limit` are the last. What is written between two pages may
    /// be in both or in none of them.
    ///
    /// # Errors
    /// As [`Self::get`].
    pub fn page(
        &mut self,
        index: usize,
        cursor: &mut u64,
        limit: usize,
        now: u64,
    ) -> Result<Vec<KeyValue>, ModuleError> {
        let (info, object) = self.object(index, "iterate")?;
        let next = object.next.ok_or_else(|| missing(info, "iterate"))?;
        let mut entries = Vec::new();
        while entries.len() < limit {
            let mut key = vec![0_u8; info.control_key_bytes().max(1)];
            let mut value = vec![0_u8; info.value_bytes.max(1)];
            // SAFETY: key and value have the lengths the object declares; the cursor is ours.
            let result = unsafe {
                next(
                    self.memory.as_ptr(),
                    std::ptr::from_mut(cursor),
                    key.as_mut_ptr(),
                    value.as_mut_ptr(),
                    now,
                )
            };
            match result {
                0 => {
                    key.truncate(info.control_key_bytes());
                    value.truncate(info.value_bytes);
                    entries.push((key, value));
                }
                e if e == -libc::ENOENT => break,
                e => return Err(control(info, "iterate", errno(e))),
            }
        }
        Ok(entries)
    }

    /// Takes every finished record out of every ring buffer and hands it to `sink`.
    pub fn drain(&mut self, mut sink: impl FnMut(Record)) {
        let mut sink: &mut dyn FnMut(Record) = &mut sink;
        for (index, object) in self.module.object_table().iter().enumerate() {
            let Some(drain) = object.drain else { continue };
            // SAFETY: `take` gets back exactly the context given here, which outlives the call.
            unsafe {
                drain(
                    self.memory.as_ptr(),
                    index as u32,
                    take,
                    (&raw mut sink).cast::<c_void>(),
                );
            }
        }
    }

    pub(super) fn object(
        &self,
        index: usize,
        operation: &'static str,
    ) -> Result<(&ObjectInfo, &abi::Object), ModuleError> {
        let found = self
            .module
            .objects
            .get(index)
            .zip(self.module.object_table().get(index));
        found.ok_or_else(|| ModuleError::Control {
            object: format!("#{index}"),
            operation,
            what: "there is no such object".into(),
        })
    }
}

/// Receives one record from the module.
unsafe extern "C" fn take(context: *mut c_void, object: u32, bytes: *const u8, length: u64) {
    // SAFETY: `drain` passes the address of its `&mut dyn FnMut` and keeps it alive.
    let sink = unsafe { &mut *context.cast::<&mut dyn FnMut(Record)>() };
    let bytes = if length == 0 || bytes.is_null() {
        Vec::new()
    } else {
        // SAFETY: the module hands `length` readable bytes, valid during this call.
        unsafe { std::slice::from_raw_parts(bytes, length as usize) }.to_vec()
    };
    sink(Record {
        object: object as usize,
        bytes,
    });
}

/// A key as control functions take it: that of a handler's prefix table has the number of bits that count before it. An address alone is a whole
/// one.
fn whole_prefix<'k>(info: &ObjectInfo, key: &'k [u8]) -> Cow<'k, [u8]> {
    match *info.kind == lpm::KIND && key.len() == info.key_bytes {
        true => {
            let bits = 8 * info.key_bytes as u32;
            Cow::Owned([&bits.to_ne_bytes()[..], key].concat())
        }
        false => Cow::Borrowed(key),
    }
}

fn right_length(
    info: &ObjectInfo,
    operation: &'static str,
    got: usize,
    want: usize,
) -> Result<(), ModuleError> {
    if got == want {
        return Ok(());
    }
    Err(control(
        info,
        operation,
        format!("{got} bytes given where {want} are declared"),
    ))
}

fn missing(info: &ObjectInfo, operation: &'static str) -> ModuleError {
    control(
        info,
        operation,
        format!("a {} does not offer it", info.kind.name),
    )
}

pub(super) fn control(info: &ObjectInfo, operation: &'static str, what: String) -> ModuleError {
    ModuleError::Control {
        object: info.name.clone(),
        operation,
        what,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::module::Config;
    use crate::testing;

    #[test]
    fn objects_are_read_written_and_listed() {
        let config = Config {
            initial: vec![None],
            ..Config::default()
        };
        let mut instance = Instance::create(testing::fixture(), &config).unwrap();
        let key = |n: u32| n.to_ne_bytes();
        instance.start(1);
        instance.fire(0, 2);
        instance.fire(99, 2);
        assert_eq!(
            instance.get(0, &key(2), 0).unwrap().unwrap(),
            1_u64.to_ne_bytes()
        );
        assert_eq!(
            instance.get(0, &key(1), 0).unwrap().unwrap(),
            1_u64.to_ne_bytes()
        );
        assert_eq!(instance.get(0, &key(4), 0).unwrap(), None);
        instance.set(0, &key(3), &7_u64.to_ne_bytes(), 0).unwrap();
        assert!(instance.set(0, &key(4), &7_u64.to_ne_bytes(), 0).is_err());
        let entries = instance.entries(0, 100, 0).unwrap();
        assert_eq!(entries.len(), 4);
        assert_eq!(entries[3], (key(3).to_vec(), 7_u64.to_ne_bytes().to_vec()));
        assert_eq!(instance.entries(0, 2, 0).unwrap().len(), 2);
        assert_eq!(
            (
                instance.count(0, 0),
                instance.count(1, 0),
                instance.count(2, 0)
            ),
            (Some(4), None, None)
        );
    }

    #[test]
    fn what_an_object_does_not_offer_is_an_error() {
        let mut instance = Instance::create(testing::fixture(), &Config::default()).unwrap();
        assert!(instance.remove(0, &[0; 4], 0).is_err());
        assert!(instance.get(1, &[], 0).is_err());
        assert!(instance.get(7, &[], 0).is_err());
        let short = instance.get(0, &[0; 3], 0).unwrap_err().to_string();
        assert_eq!(
            short,
            "get on object `counts`: 3 bytes given where 4 are declared"
        );
    }

    #[test]
    fn records_come_out_once() {
        let mut instance = Instance::create(testing::fixture(), &Config::default()).unwrap();
        instance.fire(0, 5);
        let mut records = Vec::new();
        instance.drain(|r| records.push(r));
        instance.drain(|r| records.push(r));
        let bytes = [5_u64.to_ne_bytes(), 0_u64.to_ne_bytes()].concat();
        assert_eq!(records, [Record { object: 1, bytes }]);
    }

    #[test]
    fn initial_contents_must_fit() {
        let create = |initial| {
            let config = Config {
                initial,
                ..Config::default()
            };
            Instance::create(testing::fixture(), &config).map(|_| ())
        };
        assert!(create(vec![Some(vec![0; 8])]).is_ok());
        assert!(create(vec![Some(vec![0; 7])]).is_err());
        assert!(create(vec![None, None, None]).is_err());
    }
}
