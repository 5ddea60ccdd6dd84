//! One running copy of a module: its state, its bursts, its control functions.

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::collections::BTreeMap;
use std::ptr::NonNull;
use std::sync::Arc;

use super::{Homes, Module, ModuleError, Shared, abi};
use millrace_classify::Classifier;

use crate::clock;
use crate::inside;
use crate::packet::Burst;

/// What the host decides when it makes an instance.
#[derive(Clone, Default)]
pub struct Config {
    /// seed of the hash tables; never observable in a result
    pub hash_seed: u64,
    /// seed of sketches and random draws; recorded, so that a run can be repeated
    pub sketch_seed: u64,
    /// ns since the epoch, the time of the first packet
    pub time: u64,
    /// per object, in the module's order: its content at start (`value_bytes` long), or zeros
    pub initial: Vec<Option<Vec<u8>>>,
    /// entries that are there before anything runs, in this order
    pub entries: Vec<Entry>,
    /// where packets that carry leased numbers come home, for modules whose allocators go by it
    pub homes: Option<Arc<Homes>>,
    /// the state goes on where another one was, which is loaded into it: `ON_START` does not run where it would for all
    /// workers
    pub resumed: bool,
}

impl std::fmt::Debug for Config {
    /// Without the seed of the hash tables, and without contents, which are the user's.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Config")
            .field("sketch_seed", &self.sketch_seed)
            .field("time", &self.time)
            .field("initial", &self.initial.len())
            .field("entries", &self.entries.len())
            .field("homes", &self.homes)
            .finish_non_exhaustive()
    }
}

/// An entry of an object, set from outside.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Entry {
    /// index of the object
    pub object: usize,
    /// `key_bytes` long
    pub key: Vec<u8>,
    /// `value_bytes` long
    pub value: Vec<u8>,
    /// of a classifier: all its rules, in place of key and value
    pub rules: Option<Arc<Classifier>>,
    /// the one worker that has it, of an object that is divided; none: all have it
    pub worker: Option<u32>,
}

impl Entry {
    /// A key with its value.
    #[must_use]
    pub fn new(object: usize, key: Vec<u8>, value: Vec<u8>) -> Self {
        Self {
            object,
            key,
            value,
            rules: None,
            worker: None,
        }
    }
}

impl Config {
    /// The same for one of several workers: without the entries of the others.
    #[must_use]
    pub fn of_worker(&self, worker: u32) -> Self {
        let own = |entry: &&Entry| entry.worker.is_none_or(|w| w == worker);
        Self {
            entries: self.entries.iter().filter(own).cloned().collect(),
            initial: self.initial.clone(),
            homes: self.homes.clone(),
            ..*self
        }
    }
}

/// One running copy of a module's state.
///
/// It may move between threads but is used by one at a time, which `&mut self` enforces.
#[derive(Debug)]
pub struct Instance {
    pub(super) module: Arc<Module>,
    pub(super) memory: NonNull<abi::Instance>,
    layout: Layout,
    worker: u32,
    /// by object: the rules whose table is attached
    pub(super) rules: BTreeMap<usize, Arc<Classifier>>,
    // Behind `drop`: the instance refers to it.
    shared: Option<Arc<Shared>>,
}

// SAFETY: the memory belongs to this Instance alone, and emitted code keeps no thread-local state.
unsafe impl Send for Instance {}

impl Instance {
    /// Allocates and creates the state; its memory is touched, so that it is resident.
    ///
    /// # Errors
    /// [`ModuleError::Create`] when `create` fails (out of memory) or the initial contents do not
    /// fit the objects; [`ModuleError::Control`] when an entry cannot be set.
    pub fn create(module: Arc<Module>, config: &Config) -> Result<Self, ModuleError> {
        if module.shares() {
            let shared = Shared::create(module, config, 1)?;
            return Self::join(config, &shared, 0);
        }
        Self::make(module, config, None, 0)
    }

    /// The instance of worker `worker`, from 0, of those that share state. What workers have in common was
    /// made with `shared`; worker 0 sets the entries of such objects and runs an `ON_START` that works on
    /// them. So all join before any has packets.
    ///
    /// # Errors
    /// As [`Self::create`], and when there is no such worker.
    pub fn join(config: &Config, shared: &Arc<Shared>, worker: u32) -> Result<Self, ModuleError> {
        if worker >= shared.workers() {
            return Err(ModuleError::Create {
                path: shared.module().path.clone(),
                what: format!("worker {worker} of {}", shared.workers()),
            });
        }
        let module = shared.module().clone();
        Self::make(module, config, Some(shared.clone()), worker)
    }

    fn make(
        module: Arc<Module>,
        config: &Config,
        shared: Option<Arc<Shared>>,
        worker: u32,
    ) -> Result<Self, ModuleError> {
        let initial = initial(&module, config)?;
        let failed = |what: String| ModuleError::Create {
            path: module.path.clone(),
            what,
        };
        let homes = config.homes.as_ref().map(|h| h.pointers(&module));
        let homes = homes.transpose().map_err(failed)?;
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
            shared: shared.as_ref().map_or(std::ptr::null_mut(), |s| s.memory()),
            workers: shared.as_ref().map_or(1, |s| s.workers()),
            worker,
            homes: homes.as_ref().map_or(std::ptr::null(), |h| h.as_ptr()),
            ..seen(config, &initial)
        };
        let result = table.create.map_or(0, |create| {
            // SAFETY: `memory` is zeroed, of the size and alignment the module asked for; `seen` and
            // the contents it points to (one entry an object, of its value's length; of allocators one
            // number's home each, `Homes::pointers`) outlive the call, which copies what it needs (abi.h).
            unsafe { create(memory.as_ptr(), &raw const seen) }
        });
        if result != 0 {
            // SAFETY: allocated above with this layout; a failed `create` leaves nothing behind.
            unsafe { dealloc(raw, layout) };
            return Err(failed(errno(result)));
        }
        let mut instance = Self {
            module,
            memory,
            layout,
            worker,
            rules: BTreeMap::new(),
            shared,
        };
        for entry in &config.entries {
            if let Some(rules) = &entry.rules {
                instance.set_rules(entry.object, Some(rules.clone()))?;
                continue;
            }
            if worker > 0 && instance.module.is_shared(entry.object) {
                continue;
            }
            instance.set(entry.object, &entry.key, &entry.value, config.time)?;
        }
        if worker == 0 && instance.module.starts_once() && !config.resumed {
            instance.handler(instance.module.table().start, config.time);
        }
        Ok(instance)
    }

    /// The module.
    #[must_use]
    pub fn module(&self) -> &Module {
        &self.module
    }

    /// Which of the workers that share state this is, from 0; 0 where nothing is shared.
    #[must_use]
    pub fn worker(&self) -> u32 {
        self.worker
    }

    /// Runs `ON_START`, if there is one. Where it works on shared state worker 0 did so when it joined, before
    /// anybody had packets, and this does nothing. `time` in ns.
    pub fn start(&mut self, time: u64) {
        if !self.module.starts_once() {
            self.handler(self.module.table().start, time);
        }
    }

    /// Runs `ON_STOP`, if there is one. Where it works on shared state the last worker that stops does so for
    /// all. `time` in ns.
    pub fn stop(&mut self, time: u64) {
        let shared = self.shared.as_ref().filter(|_| self.module.stops_once());
        if shared.is_none_or(|s| s.is_last()) {
            self.handler(self.module.table().stop, time);
        }
    }

    /// Runs timer `index`; one that does not exist does nothing. One that works on shared state is worker
    /// 0's, for all: false where another one runs it. `time` in ns.
    pub fn fire(&mut self, index: usize, time: u64) -> bool {
        if self.worker > 0 && self.module.fires_once(index) {
            return false;
        }
        let handler = self.module.timer_table().get(index).and_then(|t| t.fire);
        self.handler(handler, time);
        true
    }

    /// No timer in a map's value is due before this moment, ns; `u64::MAX` when none is running.
    #[must_use]
    pub fn next_alarm(&self) -> u64 {
        self.alarms().map_or(u64::MAX, |alarms| alarms.next)
    }

    /// How often timers in the values of maps have fired.
    #[must_use]
    pub fn alarms_fired(&self) -> u64 {
        self.alarms().map_or(0, |alarms| alarms.fired)
    }

    fn alarms(&self) -> Option<&abi::Alarms> {
        let alarms = self.module.table().alarms?;
        // SAFETY: the instance is created; abi.h promises an address within it, or null, which stays and
        // is written only by calls that take `&mut self`.
        unsafe { alarms(self.memory.as_ptr()).as_ref() }
    }

    /// Fires the timers in the values of maps that are due at `time`, ns. A burst does so before each of
    /// its packets; this is for when none comes.
    pub fn alarm(&mut self, time: u64) {
        if self.next_alarm() <= time {
            self.handler(self.module.table().alarm, time);
        }
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
            bared: here,
            time,
            ..abi::Packet::empty()
        };
        // SAFETY: the instance is created and exclusively ours; the descriptor is a packet of no
        // bytes whose pointers all lie in live memory, as abi.h promises to handlers.
        inside::call(|| unsafe { handler(self.memory.as_ptr(), &raw mut packet) });
    }

    /// Runs packet entry `program` over a burst, with or without the prefetching passes, and sets
    /// the fate of each of its packets. A program that does not exist aborts them all. Returns the
    /// time spent inside the module, in ticks of [`crate::clock`].
    pub fn burst(&mut self, program: usize, prefetch: bool, burst: &mut Burst) -> u64 {
        let (pointers, count) = burst.descriptors();
        // SAFETY: `Burst` promises `count` distinct descriptors, each pointing into a buffer of its own
        // that lives and stays in place while `burst` is borrowed.
        unsafe {
            self.run(
                program,
                prefetch,
                std::slice::from_raw_parts(pointers, count as usize),
            )
        }
    }

    /// The same over descriptors that lie anywhere.
    ///
    /// # Safety
    /// The descriptors are distinct, and each describes a packet as abi.h asks for, in memory that
    /// nobody else uses during the call.
    pub(crate) unsafe fn run(
        &mut self,
        program: usize,
        prefetch: bool,
        packets: &[*mut abi::Packet],
    ) -> u64 {
        let Some(function) = self.module.burst_function(program, prefetch) else {
            return 0;
        };
        let begin = clock::ticks();
        // SAFETY: the instance is created and exclusively ours; the rest as the caller promises.
        inside::call(|| unsafe {
            function(self.memory.as_ptr(), packets.as_ptr(), packets.len() as u32);
        });
        clock::ticks().saturating_sub(begin)
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

/// What a module is told, of an instance that shares nothing.
pub(super) fn seen(config: &Config, initial: &[*const u8]) -> abi::Config {
    abi::Config {
        hash_seed: config.hash_seed,
        sketch_seed: config.sketch_seed,
        time: config.time,
        initial: initial.as_ptr(),
        shared: std::ptr::null_mut(),
        workers: 1,
        worker: 0,
        homes: std::ptr::null(),
    }
}

/// Where each object's content at start is, in the memory of `config`; null for zeros.
pub(super) fn initial(module: &Module, config: &Config) -> Result<Vec<*const u8>, ModuleError> {
    let failed = |what: String| ModuleError::Create {
        path: module.path.clone(),
        what,
    };
    if config.initial.len() > module.objects.len() {
        return Err(failed("more initial contents than objects".into()));
    }
    for (info, content) in module.objects.iter().zip(&config.initial) {
        let Some(content) = content else { continue };
        // A global is one value; an array of programs has one for each of its elements.
        let values = match info.kind.holds_programs() {
            true => info.capacity,
            false => 1,
        };
        let bytes = values.checked_mul(info.value_bytes as u64);
        if Some(content.len() as u64) != bytes {
            return Err(failed(format!(
                "object `{}` holds {values} values of {} bytes, its initial content has {}",
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
    Ok(initial)
}

/// The system's word for a result below zero.
pub(super) fn errno(result: i32) -> String {
    std::io::Error::from_raw_os_error(result.saturating_neg()).to_string()
}
