//! A loaded module: the Rust side of the border to emitted code.
//!
//! A module is trusted as far as the stages before it are: `check` proved the program and `emit`
//! wrote the C. What is verified here is that the file speaks this version of the border and is not
//! something else altogether; `unsafe` is confined to this folder.

pub mod abi;
mod changes;
mod control;
mod history;
mod homes;
mod instance;
mod parts;
mod profile;
mod rows;
mod rules;
mod saved;
mod shared;
mod transact;

use std::ffi::CStr;
use std::path::{Path, PathBuf};

use millrace_object::state::{self, StateKind, lpm};

pub use changes::{Changed, ChangedEntry};
pub use control::{KeyValue, Record};
pub use history::Seen;
pub use homes::Homes;
pub use instance::{Config, Entry, Instance};
pub use parts::{Members, PartsSeen};
pub use profile::{Conflict, Site, What};
pub use rows::Rows;
pub use saved::{Keeping, Placed, Rest, Stamped};
pub use shared::Shared;
pub use transact::{Access, TransactCounts};

/// The largest instance that is believed: its big parts are mapped by `create`, not held in it.
const MAX_INSTANCE_BYTES: u64 = 1 << 30;
/// More objects, timers or programs than this are a corrupt table, not a program.
const MAX_TABLE: u32 = 4096;

/// Why a module cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ModuleError {
    /// The dynamic loader refused the file.
    #[error("cannot load {path}: {source}")]
    Load {
        /// the file
        path: PathBuf,
        /// what the loader said
        source: libloading::Error,
    },
    /// The file exports something, but not a module of this version.
    #[error("{path} is not a module of this version: {what}")]
    Unfit {
        /// the file
        path: PathBuf,
        /// what is wrong with it
        what: String,
    },
    /// `create` failed.
    #[error("cannot create the state of {path}: {what}")]
    Create {
        /// the file
        path: PathBuf,
        /// the system's word for it
        what: String,
    },
    /// A control function failed or does not exist for this kind of object.
    #[error("{operation} on object `{object}`: {what}")]
    Control {
        /// the object's name
        object: String,
        /// `get`, `set`, …
        operation: &'static str,
        /// why
        what: String,
    },
}

/// What a module tells about a state object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectInfo {
    /// the author's name
    pub name: String,
    /// its kind
    pub kind: &'static StateKind,
    /// bytes of a key
    pub key_bytes: usize,
    /// bytes of a value
    pub value_bytes: usize,
    /// most entries
    pub capacity: u64,
    /// bytes that an instance maps for it
    pub bytes: u64,
    /// whether it hands out records
    pub records: bool,
}

impl ObjectInfo {
    /// Bytes of a key as it is set, listed and looked for from outside: prefixes of handlers stand behind the number of their bits, an `u32`, as
    /// those of BPF do.
    #[must_use]
    pub fn control_key_bytes(&self) -> usize {
        match *self.kind == lpm::KIND {
            true => size_of::<u32>() + self.key_bytes,
            false => self.key_bytes,
        }
    }
}

/// A shared object that passed [`Module::load`].
#[derive(Debug)]
pub struct Module {
    table: *const abi::Module,
    objects: Vec<ObjectInfo>,
    periods: Vec<u64>,
    path: PathBuf,
    // Last: the table lies in it.
    _library: libloading::Library,
}

// SAFETY: the table and all it points to are constant data of a library that stays loaded as long as
// the Module lives; nothing is written through these pointers.
unsafe impl Send for Module {}
// SAFETY: as above; shared reads of constants.
unsafe impl Sync for Module {}

impl Module {
    /// Loads a shared object and verifies that it is a module of this version.
    ///
    /// # Errors
    /// [`ModuleError::Load`] when the dynamic loader refuses it, [`ModuleError::Unfit`] when its
    /// table is of another version or makes no sense.
    pub fn load(path: &Path) -> Result<Self, ModuleError> {
        let unfit = |what: String| ModuleError::Unfit {
            path: path.to_path_buf(),
            what,
        };
        let load = |source| ModuleError::Load {
            path: path.to_path_buf(),
            source,
        };
        // A bare file name would be searched for in the system's library folders.
        let full = std::path::absolute(path).map_err(|e| unfit(e.to_string()))?;
        // SAFETY: loading runs the library's initialisers. A module has none of its own: it is C
        // written by `emit` from a program that `check` proved.
        let library = unsafe { libloading::Library::new(&full) }.map_err(load)?;
        // SAFETY: `millrace_module` has this type in every version of the border (abi.h).
        let export = unsafe {
            library.get::<unsafe extern "C" fn() -> *const abi::Module>(b"millrace_module\0")
        }
        .map_err(load)?;
        // SAFETY: the function takes nothing and returns the address of a constant.
        let table = unsafe { export() };
        // SAFETY: `abi` is the first field in every version, so it may be read before anything else
        // is known; a null pointer gives None.
        let version = unsafe { table.cast::<u32>().as_ref() }.copied();
        match version {
            None => return Err(unfit("it has no table".into())),
            Some(abi::ABI) => {}
            Some(other) => {
                return Err(unfit(format!(
                    "it speaks version {other} of the border, this program version {}; build it again",
                    abi::ABI
                )));
            }
        }
        // SAFETY: the version says that the table has this layout; it is constant data of `library`.
        let seen = unsafe { &*table };
        let (objects, periods) = verify(seen).map_err(unfit)?;
        Ok(Self {
            table,
            objects,
            periods,
            path: path.to_path_buf(),
            _library: library,
        })
    }

    /// The state objects, in the order of `Program::objects`.
    #[must_use]
    pub fn objects(&self) -> &[ObjectInfo] {
        &self.objects
    }

    /// Whether entries of an object may be set from outside.
    #[must_use]
    pub fn settable(&self, index: usize) -> bool {
        let object = self.objects.get(index);
        object.is_some_and(|o| o.kind.is_set_from_outside())
            && self
                .object_table()
                .get(index)
                .is_some_and(|o| o.set.is_some())
    }

    /// Whether an object takes rules ([`Instance::set_rules`]).
    #[must_use]
    pub fn takes_rules(&self, index: usize) -> bool {
        let object = self.object_table().get(index);
        object.is_some_and(|o| o.attach.is_some())
    }

    /// Whether the entries of an object can be listed ([`Instance::page`]).
    #[must_use]
    pub fn lists(&self, index: usize) -> bool {
        let object = self.object_table().get(index);
        object.is_some_and(|o| o.next.is_some())
    }

    /// Whether it is known of an object how many places are taken ([`Instance::used`]), and how often none was free
    /// ([`Instance::full`]).
    #[must_use]
    pub fn tells(&self, index: usize) -> (bool, bool) {
        let object = self.object_table().get(index);
        object.map_or((false, false), |o| (o.used.is_some(), o.full.is_some()))
    }

    /// Whether an object is one for all workers ([`Shared`]), whichever instance is asked.
    #[must_use]
    pub fn is_shared(&self, index: usize) -> bool {
        self.object_table()
            .get(index)
            .is_some_and(|o| o.shared != 0)
    }

    /// Bytes of the objects that are one for all workers, without what they have per worker.
    #[must_use]
    pub fn common_bytes(&self) -> u64 {
        let shared = self.object_table().iter().filter(|o| o.shared != 0);
        shared.map(|o| o.bytes).sum()
    }

    /// Whether instances have state in common.
    #[must_use]
    pub fn shares(&self) -> bool {
        self.table().shared_bytes > 0
    }

    /// Whether packets of several instances have an order: they work on objects that all have in common.
    #[must_use]
    pub fn orders(&self) -> bool {
        self.object_table().iter().any(|o| o.shared != 0)
    }

    /// Whether timer `index` works on shared state, so that one worker fires it for all.
    #[must_use]
    pub fn fires_once(&self, index: usize) -> bool {
        self.timer_table().get(index).is_some_and(|t| t.once != 0)
    }

    /// Whether `ON_START` works on shared state, so that one worker runs it for all.
    #[must_use]
    pub fn starts_once(&self) -> bool {
        self.table().start_once != 0
    }

    /// Whether `ON_STOP` does.
    #[must_use]
    pub fn stops_once(&self) -> bool {
        self.table().stop_once != 0
    }

    /// Periods of the timers in nanoseconds, each at least 1.
    #[must_use]
    pub fn timers(&self) -> &[u64] {
        &self.periods
    }

    /// How many packet entries there are, at least 1.
    #[must_use]
    pub fn programs(&self) -> usize {
        self.table().programs as usize
    }

    /// Bytes that one instance takes: the instance itself and what its objects map, those that it shares
    /// included.
    #[must_use]
    pub fn state_bytes(&self) -> u64 {
        self.objects
            .iter()
            .fold(self.table().instance_bytes, |sum, o| {
                sum.saturating_add(o.bytes)
            })
    }

    /// Where it was loaded from.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Where its code is, of an address in it: as its line table counts. None of any other address.
    #[must_use]
    pub fn place(&self, address: usize) -> Option<u64> {
        let own = library(self.table.addr())?;
        let base = library(address)?;
        (own == base).then(|| (address - base) as u64)
    }

    /// The file that it was loaded from.
    #[must_use]
    pub fn file(&self) -> &Path {
        &self.path
    }

    fn table(&self) -> &abi::Module {
        // SAFETY: verified non-null by `load`, constant, and alive as long as the library in `self`.
        unsafe { &*self.table }
    }

    fn object_table(&self) -> &[abi::Object] {
        let table = self.table();
        if table.objects == 0 {
            return &[];
        }
        // SAFETY: `verify` saw a non-null array of `objects` entries, constant data of the library.
        unsafe { std::slice::from_raw_parts(table.object, table.objects as usize) }
    }

    fn timer_table(&self) -> &[abi::Timer] {
        let table = self.table();
        if table.timers == 0 {
            return &[];
        }
        // SAFETY: as in `object_table`.
        unsafe { std::slice::from_raw_parts(table.timer, table.timers as usize) }
    }

    fn burst_function(&self, program: usize, prefetch: bool) -> Option<abi::Burst> {
        let table = self.table();
        let array = if prefetch {
            table.burst
        } else {
            table.burst_plain
        };
        if program >= table.programs as usize {
            return None;
        }
        // SAFETY: `verify` saw non-null arrays of `programs` entries; `program` is below that.
        unsafe { *array.add(program) }
    }
}

/// Whether the table makes sense, and what it says of objects and timers.
fn verify(table: &abi::Module) -> Result<(Vec<ObjectInfo>, Vec<u64>), String> {
    let array = |name: &str, count: u32, null: bool| match count {
        0 => Ok(()),
        _ if count > MAX_TABLE => Err(format!("{count} {name}, more than {MAX_TABLE}")),
        _ if null => Err(format!("{count} {name}, but no table of them")),
        _ => Ok(()),
    };
    array("objects", table.objects, table.object.is_null())?;
    array("timers", table.timers, table.timer.is_null())?;
    array(
        "programs",
        table.programs,
        table.burst.is_null() || table.burst_plain.is_null(),
    )?;
    if table.programs == 0 {
        return Err("it has no packet entry".into());
    }
    if table.create.is_none() || table.destroy.is_none() {
        return Err("it cannot create or destroy its state".into());
    }
    if table.alarms.is_none() != table.alarm.is_none() {
        return Err("its maps have timers that cannot be seen or cannot be fired".into());
    }
    if !table.instance_align.is_power_of_two() || table.instance_align > 1 << 21 {
        return Err(format!(
            "alignment {} of the instance",
            table.instance_align
        ));
    }
    if table.instance_bytes > MAX_INSTANCE_BYTES {
        return Err(format!("an instance of {} bytes", table.instance_bytes));
    }
    if table.shared_bytes > 0 {
        if table.create_shared.is_none() || table.destroy_shared.is_none() {
            return Err("it cannot create or destroy what its instances share".into());
        }
        if !table.shared_align.is_power_of_two()
            || table.shared_align > 1 << 21
            || table.shared_bytes > MAX_INSTANCE_BYTES
        {
            return Err(format!(
                "{} shared bytes at an alignment of {}",
                table.shared_bytes, table.shared_align
            ));
        }
    }
    // SAFETY: null, or a constant of the module's own version.
    if let Some(history) = unsafe { table.history.as_ref() } {
        if !(1..=history::MOST_ROW).contains(&history.bytes) {
            return Err(format!("rows of {} bytes", history.bytes));
        }
        if history.extract.is_none() || history.process.is_none() || history.replay.is_none() {
            return Err("its state is replicated, and it cannot make or replay rows".into());
        }
    }
    // SAFETY: as above.
    if let Some(transact) = unsafe { table.transact.as_ref() } {
        if transact.whys > transact::MOST_WHYS || transact.why.is_null() {
            return Err(format!("{} reasons to run alone", transact.whys));
        }
        if transact.counts.is_none() || transact.alone.is_none() {
            return Err("its packets are transactions that it does not count".into());
        }
    }
    for program in 0..table.programs as usize {
        // SAFETY: both arrays are non-null with `programs` entries (checked above).
        let (burst, plain) =
            unsafe { (*table.burst.add(program), *table.burst_plain.add(program)) };
        if burst.is_none() || plain.is_none() {
            return Err(format!("packet entry {program} has no function"));
        }
    }
    let mut objects = Vec::new();
    for index in 0..table.objects as usize {
        // SAFETY: the array is non-null with `objects` entries (checked above).
        let object = unsafe { &*table.object.add(index) };
        objects.push(ObjectInfo {
            name: text(object.name).ok_or_else(|| format!("object {index} has no name"))?,
            kind: text(object.kind)
                .and_then(|kind| state::by_name(&kind))
                .ok_or_else(|| format!("object {index} is of no kind that is known"))?,
            key_bytes: object.key_bytes as usize,
            value_bytes: object.value_bytes as usize,
            capacity: object.capacity,
            bytes: object.bytes,
            records: object.drain.is_some(),
        });
    }
    let mut periods = Vec::new();
    for index in 0..table.timers as usize {
        // SAFETY: the array is non-null with `timers` entries (checked above).
        let timer = unsafe { &*table.timer.add(index) };
        if timer.period == 0 || timer.fire.is_none() {
            return Err(format!("timer {index} has no period or no function"));
        }
        periods.push(timer.period);
    }
    Ok((objects, periods))
}

fn text(pointer: *const std::ffi::c_char) -> Option<String> {
    if pointer.is_null() {
        return None;
    }
    // SAFETY: non-null names in a module's table are zero-terminated constants (abi.h).
    unsafe { CStr::from_ptr(pointer) }
        .to_str()
        .ok()
        .map(str::to_owned)
}

/// Where the library begins that an address is in.
fn library(address: usize) -> Option<usize> {
    let mut found = std::mem::MaybeUninit::<libc::Dl_info>::zeroed();
    // SAFETY: any address may be asked about; the answer has room.
    let known = unsafe { libc::dladdr(address as *const libc::c_void, found.as_mut_ptr()) };
    // SAFETY: all zeros are a value of it, and `dladdr` wrote the rest where it knows the address.
    let found = unsafe { found.assume_init() };
    (known != 0).then(|| found.dli_fbase.addr())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;

    #[test]
    fn the_fixture_tells_what_it_is() {
        let module = testing::fixture();
        let names: Vec<_> = module.objects().iter().map(|o| o.name.as_str()).collect();
        assert_eq!(names, ["counts", "events"]);
        assert_eq!(module.timers(), [1_000_000_000]);
        assert_eq!(module.programs(), 1);
        assert!(module.objects()[1].records);
        assert!(!module.objects()[0].records);
    }

    #[test]
    fn what_is_no_module_is_refused_with_the_reason() {
        let dir = tempfile::tempdir().unwrap();
        let text_file = dir.path().join("x.so");
        std::fs::write(&text_file, "not an ELF file").unwrap();
        assert!(matches!(
            Module::load(&text_file),
            Err(ModuleError::Load { .. })
        ));

        let refused = |name: &str, define: &str| {
            let path = testing::compile_module(name, &testing::fixture_source(), &[define]);
            match Module::load(&path) {
                Err(ModuleError::Unfit { what, .. }) => what,
                other => panic!("{name}: {other:?}"),
            }
        };
        assert!(refused("version", "-DFIXTURE_ABI=99").contains("version 99"));
        assert!(refused("align", "-DFIXTURE_ALIGN=24").contains("alignment 24"));
        assert!(refused("period", "-DFIXTURE_PERIOD=0").contains("timer 0"));
        assert!(refused("programs", "-DFIXTURE_PROGRAMS=0").contains("no packet entry"));
    }
}
