//! One running copy of a module: its state, its bursts, its control functions.

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::ffi::c_void;
use std::ptr::NonNull;
use std::sync::Arc;

use super::{Module, ModuleError, ObjectInfo, abi};
use crate::clock;
use crate::packet::Burst;

/// What the host decides when it makes an instance.
#[derive(Clone, Debug, Default)]
pub struct Config {
    /// seed of the hash tables; never observable in a result
    pub hash_seed: u64,
    /// seed of sketches and random draws; recorded, so that a run can be repeated
    pub sketch_seed: u64,
    /// ns since the epoch, the time of the first packet
    pub time: u64,
    /// per object, in the module's order: its content at start (`value_bytes` long), or zeros
    pub initial: Vec<Option<Vec<u8>>>,
}

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

/// One running copy of a module's state.
///
/// It may move between threads but is used by one at a time, which `&mut self` enforces.
#[derive(Debug)]
pub struct Instance {
    module: Arc<Module>,
    memory: NonNull<abi::Instance>,
    layout: Layout,
}

// SAFETY: the memory belongs to this Instance alone, and emitted code keeps no thread-local state.
unsafe impl Send for Instance {}

impl Instance {
    /// Allocates and creates the state; its memory is touched, so that it is resident.
    ///
    /// # Errors
    /// [`ModuleError::Create`] when `create` fails (out of memory) or the initial contents do not
    /// fit the objects.
    pub fn create(module: Arc<Module>, config: &Config) -> Result<Self, ModuleError> {
        let failed = |what: String| ModuleError::Create {
            path: module.path.clone(),
            what,
        };
        if config.initial.len() > module.objects.len() {
            return Err(failed("more initial contents than objects".into()));
        }
        for (info, content) in module.objects.iter().zip(&config.initial) {
            let Some(content) = content else { continue };
            if content.len() != info.value_bytes {
                return Err(failed(format!(
                    "object `{}` holds {} bytes, its initial content has {}",
                    info.name,
                    info.value_bytes,
                    content.len()
                )));
            }
        }
        let mut initial: Vec<*const u8> = config
            .initial
            .iter()
            .map(|c| c.as_ref().map_or(std::ptr::null(), |c| c.as_ptr()))
            .collect();
        initial.resize(module.objects.len().max(1), std::ptr::null());

        let table = module.table();
        let layout = Layout::from_size_align(
            table.instance_bytes.max(1) as usize,
            table.instance_align as usize,
        )
        .map_err(|e| failed(e.to_string()))?;
        // SAFETY: the layout has a size of at least 1.
        let raw = unsafe { alloc_zeroed(layout) };
        let Some(memory) = NonNull::new(raw.cast::<abi::Instance>()) else {
            handle_alloc_error(layout)
        };
        let seen = abi::Config {
            hash_seed: config.hash_seed,
            sketch_seed: config.sketch_seed,
            time: config.time,
            initial: initial.as_ptr(),
        };
        let result = table.create.map_or(0, |create| {
            // SAFETY: `memory` is zeroed, of the size and alignment the module asked for; `seen` and
            // the contents it points to (one entry an object, of its value's length) outlive the
            // call, which copies what it needs (abi.h).
            unsafe { create(memory.as_ptr(), &raw const seen) }
        });
        if result != 0 {
            // SAFETY: allocated above with this layout; a failed `create` leaves nothing behind.
            unsafe { dealloc(raw, layout) };
            return Err(failed(errno(result)));
        }
        Ok(Self {
            module,
            memory,
            layout,
        })
    }

    /// The module.
    #[must_use]
    pub fn module(&self) -> &Module {
        &self.module
    }

    /// Runs `ON_START`, if there is one. `time` in ns.
    pub fn start(&mut self, time: u64) {
        self.handler(self.module.table().start, time);
    }

    /// Runs `ON_STOP`, if there is one. `time` in ns.
    pub fn stop(&mut self, time: u64) {
        self.handler(self.module.table().stop, time);
    }

    /// Runs timer `index`; one that does not exist does nothing. `time` in ns.
    pub fn fire(&mut self, index: usize, time: u64) {
        let handler = self.module.timer_table().get(index).and_then(|t| t.fire);
        self.handler(handler, time);
    }

    fn handler(&mut self, handler: Option<abi::Handler>, time: u64) {
        let Some(handler) = handler else { return };
        let mut nothing = [0_u8; 1];
        let here = nothing.as_mut_ptr();
        let mut packet = abi::Packet {
            data: here,
            end: here,
            meta: here,
            floor: here,
            ceiling: here,
            time,
            ..abi::Packet::empty()
        };
        // SAFETY: the instance is created and exclusively ours; the descriptor is a packet of no
        // bytes whose pointers all lie in live memory, as abi.h promises to handlers.
        unsafe { handler(self.memory.as_ptr(), &raw mut packet) };
    }

    /// Runs packet entry `program` over a burst, with or without the prefetching passes, and sets
    /// the fate of each of its packets. A program that does not exist aborts them all. Returns the
    /// time spent inside the module, in ticks of [`crate::clock`].
    pub fn burst(&mut self, program: usize, prefetch: bool, burst: &mut Burst) -> u64 {
        let (pointers, count) = burst.descriptors();
        let Some(function) = self.module.burst_function(program, prefetch) else {
            return 0;
        };
        let begin = clock::ticks();
        // SAFETY: the instance is created and exclusively ours. `Burst` promises `count` distinct
        // descriptors, each pointing into a buffer of its own that lives and stays in place while
        // `burst` is borrowed.
        unsafe { function(self.memory.as_ptr(), pointers, count) };
        clock::ticks().saturating_sub(begin)
    }

    /// How many live entries object `index` has at `now` (ns); none when it cannot be counted.
    #[must_use]
    pub fn count(&mut self, index: usize, now: u64) -> Option<u64> {
        let count = self.module.object_table().get(index)?.count?;
        // SAFETY: a control function of this module on its own created instance.
        Some(unsafe { count(self.memory.as_ptr(), now) })
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
        let (info, object) = self.object(index, "get")?;
        let get = object.get.ok_or_else(|| missing(info, "get"))?;
        right_length(info, "get", key.len(), info.key_bytes)?;
        let mut value = vec![0_u8; info.value_bytes.max(1)];
        // SAFETY: key and value have the lengths the object declares.
        let result = unsafe { get(self.memory.as_ptr(), key.as_ptr(), value.as_mut_ptr(), now) };
        value.truncate(info.value_bytes);
        match result {
            0 => Ok(Some(value)),
            e if e == -libc::ENOENT => Ok(None),
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
        right_length(info, "set", key.len(), info.key_bytes)?;
        right_length(info, "set", value.len(), info.value_bytes)?;
        // SAFETY: key and value have the lengths the object declares.
        match unsafe { set(self.memory.as_ptr(), key.as_ptr(), value.as_ptr(), now) } {
            0 => Ok(()),
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
        right_length(info, "remove", key.len(), info.key_bytes)?;
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
        let (info, object) = self.object(index, "iterate")?;
        let next = object.next.ok_or_else(|| missing(info, "iterate"))?;
        let mut entries = Vec::new();
        let mut cursor = 0_u64;
        while entries.len() < limit {
            let mut key = vec![0_u8; info.key_bytes.max(1)];
            let mut value = vec![0_u8; info.value_bytes.max(1)];
            // SAFETY: key and value have the lengths the object declares; the cursor is ours.
            let result = unsafe {
                next(
                    self.memory.as_ptr(),
                    &raw mut cursor,
                    key.as_mut_ptr(),
                    value.as_mut_ptr(),
                    now,
                )
            };
            match result {
                0 => {
                    key.truncate(info.key_bytes);
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

    fn object(
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

impl Drop for Instance {
    fn drop(&mut self) {
        if let Some(destroy) = self.module.table().destroy {
            // SAFETY: created once, destroyed once.
            unsafe { destroy(self.memory.as_ptr()) };
        }
        // SAFETY: allocated in `create` with this layout; nothing refers to it any more.
        unsafe { dealloc(self.memory.as_ptr().cast::<u8>(), self.layout) };
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
        format!("a {} does not offer it", info.kind),
    )
}

fn control(info: &ObjectInfo, operation: &'static str, what: String) -> ModuleError {
    ModuleError::Control {
        object: info.name.clone(),
        operation,
        what,
    }
}

fn errno(result: i32) -> String {
    std::io::Error::from_raw_os_error(result.saturating_neg()).to_string()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
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
