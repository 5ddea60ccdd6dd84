//! Functions in the XDP dialect, run by the kernel: the function's own object is loaded by libbpf, attached to
//! interfaces (`xdp:IF`, [`millrace_dataplane::port::xdp`]), and called by a program that counts (`counters`).
//!
//! The program that runs is the author's, instruction for instruction, as libbpf made it ready; a few instructions
//! before and behind it count. Nothing outlives the process: programs are attached by
//! links, maps are not pinned.

#[allow(unsafe_code, reason = "the border to libbpf")]
mod contents;
mod counters;
mod load;
mod trouble;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use libbpf_rs::{MapCore, MapHandle, MapType, Object, RingBuffer, RingBufferBuilder};
use millrace_dataplane::account::{Account, ObjectAccount};
use millrace_dataplane::module::KeyValue;
use millrace_dataplane::port::PortError;
use millrace_dataplane::port::xdp::{Attached, Place};

pub use counters::MOST_PORTS;
pub use load::{Content, Wanted};

/// A record that the function left in a ring buffer: the map's name, its bytes.
pub type Record = (String, Vec<u8>);

/// A function that runs in the kernel. Dropped, it is taken off the interfaces.
pub struct Kernel {
    // In this order: packets stop, then counting, then the maps go.
    attached: Vec<Attached>,
    counters: counters::Counters,
    rings: Option<RingBuffer<'static>>,
    records: Arc<Mutex<Vec<Record>>>,
    object: Object,
    places: Vec<Place>,
}

impl Kernel {
    /// Loads a function and attaches it to the interfaces that `words` name, port 0 first.
    ///
    /// # Errors
    /// A word is wrong, its interface missing or taken; libbpf or the kernel's verifier refuses the object, with
    /// its words.
    pub fn start(wanted: &Wanted<'_>, words: &[String]) -> Result<Self, PortError> {
        let places = words
            .iter()
            .map(|word| Place::find(word))
            .collect::<Result<Vec<_>, _>>()?;
        let word = words.join(",");
        let interfaces: Vec<u32> = places.iter().map(Place::index).collect();
        if interfaces.len() > MOST_PORTS {
            return Err(trouble::live(
                &word,
                format!("{} interfaces, at most {MOST_PORTS}", interfaces.len()),
                "run the function on the others by a run of its own",
            ));
        }
        let object = load::load(&word, wanted)?;
        contents::fill(&word, &object, wanted, &interfaces)?;
        let program = object.progs().find(|p| p.name() == wanted.program);
        let program = program.ok_or_else(|| {
            let what = format!("the object has no program `{}`", wanted.program);
            trouble::live(&word, what, "`millrace check` lists the programs")
        })?;
        let counters = counters::Counters::around(&word, &program, wanted.license, &interfaces)?;
        let records = Arc::new(Mutex::new(Vec::new()));
        let rings = rings(&word, &object, &records)?;
        let attached = places
            .iter()
            .map(|place| place.attach(counters.program()))
            .collect::<Result<_, _>>()?;
        Ok(Self {
            attached,
            counters,
            rings,
            records,
            object,
            places,
        })
    }

    /// Whether the interfaces are still there and up.
    ///
    /// # Errors
    /// The first that is not.
    pub fn look(&self) -> Result<(), PortError> {
        self.places.iter().try_for_each(Place::look)
    }

    /// The account so far: fates by verdict, a row for each port, and one for what was redirected.
    ///
    /// # Errors
    /// The counters cannot be read.
    pub fn account(&self) -> Result<Account, PortError> {
        let words: Vec<&str> = self.places.iter().map(|p| p.word.as_str()).collect();
        let mut account = self.counters.account(&words)?;
        account.facts = self.attached.iter().map(|a| a.fact.clone()).collect();
        Ok(account)
    }

    /// Waits this long for records, and takes those that came.
    pub fn records(&self, patience: Duration) -> Vec<Record> {
        match &self.rings {
            // Interrupted by a signal: whoever calls sees the signal's flag.
            Some(rings) => drop(rings.poll(patience)),
            None => std::thread::sleep(patience),
        }
        std::mem::take(&mut *self.records.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Takes the function off its interfaces; what it has left is read and counted afterwards.
    pub fn detach(&mut self) {
        self.attached.clear();
    }

    /// The maps as they are, globals left out.
    #[must_use]
    pub fn objects(&self) -> Vec<ObjectAccount> {
        let maps = self.object.maps();
        let maps = maps.filter(|m| !m.name().to_string_lossy().contains('.'));
        maps.map(|map| ObjectAccount {
            name: map.name().to_string_lossy().into_owned(),
            kind: contents::kind(map.map_type()),
            entries: contents::counted(map.map_type()).then(|| map.keys().count() as u64),
            capacity: u64::from(map.max_entries()),
            bytes: map.query_fdinfo().ok().and_then(|i| i.memlock).unwrap_or(0),
            by_worker: Vec::new(),
            full_by_worker: Vec::new(),
        })
        .collect()
    }

    /// The entries of a map.
    ///
    /// # Errors
    /// There is no such map, it is of a kind whose entries are not bytes of its own, or cannot be read.
    pub fn entries(&self, name: &str) -> Result<Vec<KeyValue>, PortError> {
        contents::entries(&self.object, name)
    }
}

/// The reader of all ring buffers; none where there are none.
fn rings(
    word: &str,
    object: &Object,
    records: &Arc<Mutex<Vec<Record>>>,
) -> Result<Option<RingBuffer<'static>>, PortError> {
    let no = |e: libbpf_rs::Error| trouble::refused(word, "cannot read a ring buffer", &e, "");
    let mut handles = Vec::new();
    for map in object.maps().filter(|m| m.map_type() == MapType::RingBuf) {
        let name = map.name().to_string_lossy().into_owned();
        handles.push((name, MapHandle::try_from(&map).map_err(no)?));
    }
    if handles.is_empty() {
        return Ok(None);
    }
    let mut builder = RingBufferBuilder::new();
    for (name, map) in &handles {
        let (name, records) = (name.clone(), records.clone());
        let take = move |bytes: &[u8]| {
            let mut records = records.lock().unwrap_or_else(PoisonError::into_inner);
            records.push((name.clone(), bytes.to_vec()));
            0
        };
        builder.add(map, take).map_err(no)?;
    }
    builder.build().map(Some).map_err(no)
}
