//! Packets of a running function: those that fit a filter are followed, and each is explained from the state that it met.
//!
//! The worker that has a packet executes it by the interpreter before its machine code does, to find which state the packet
//! reads, and hands out a copy of that ([`Caught`]); whoever asked makes the explanation of it elsewhere ([`Tracing::explain`]). Of
//! large maps only the entries are copied that the packet comes to; of other objects all.
//!
//! What that may take of a worker is bounded (`SHARE`): bursts pass by unseen while it has taken more, and are counted.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::mpsc::SyncSender;
use std::time::Instant;

use millrace_check::Checked;
use millrace_control::Exposed;
use millrace_dataplane::module::{Config, Instance, Module};
use millrace_dataplane::packet::Fate;
use millrace_dataplane::worker::watch::{Decided, Follow, Observer, Sight};
use millrace_object::program::{ObjectId, Program, StateObject};
use millrace_object::state::{hash, map};
use millrace_object::types::EntryTypes;
use millrace_reference::{Entry, Held};
use millrace_topology::Topology;
use millrace_verify::Packet;

use crate::document::Explanation;
use crate::element::Part;
use crate::execution::{Asked, Failed, Source, content, estimate, execute_from};
use crate::filter::{Filter, Seen};
use crate::follow::{At, Case, ExplainError, document};
use crate::walk::Gone;

/// One part in so many of a worker's time goes into looking for packets, at most.
const SHARE: u64 = 100;
/// What may be taken at once, ns: a few packets are explained as they come.
const CREDIT: i64 = 20_000_000;
/// Objects that hold more bytes are not copied as a whole where the packet needs a few entries.
const LARGE: u64 = 64 << 10;
/// Packets that pass by before a worker says so.
const TOLD: u64 = 4096;
/// Packets that wait to be explained.
pub const WAITING: usize = 256;

/// A function that runs, as it is explained.
pub struct Function {
    /// its number in the run
    pub id: u64,
    /// its name
    pub name: String,
    /// what was written
    pub program: Program,
    /// what is proved of it
    pub checked: Checked,
    /// its state as it is seen from outside
    pub exposed: Arc<Exposed>,
    /// what its keys and values are made of
    pub types: BTreeMap<String, EntryTypes>,
    /// the code
    pub module: Arc<Module>,
    /// seed of sketches and random draws
    pub seed: u64,
    /// which of the packet entries runs
    pub entry: usize,
    /// names of its ports
    pub ports: Vec<String>,
}

impl Function {
    pub(crate) fn part(&self) -> Part<'_> {
        Part {
            name: self.name.clone(),
            program: &self.program,
            checked: &self.checked,
            exposed: &self.exposed,
            types: &self.types,
            module: self.module.clone(),
            config: Config {
                sketch_seed: self.seed,
                ..Config::default()
            },
            entry: self.entry,
            ports: self.ports.clone(),
        }
    }
}

/// What is traced.
pub struct Tracing {
    /// the functions, in the order of the topology; none for a guest, which has no lines
    pub functions: Vec<Option<Function>>,
    /// how they are connected
    pub topology: Topology,
    /// names of the run's ports
    pub ports: Vec<String>,
    /// which packets
    pub filter: Filter,
    /// packets that are still wanted
    pub left: AtomicI64,
    /// packets that were looked at
    pub looked: AtomicU64,
    /// packets that passed by while looking had taken its share of time
    pub passed: AtomicU64,
}

/// The state that a packet met at an element.
#[derive(Default)]
struct Taken {
    contents: Vec<Option<Held>>,
    estimates: BTreeMap<(ObjectId, Vec<u8>), u32>,
}

/// A packet at one element.
struct Hop {
    element: usize,
    packet: Packet,
    /// why it cannot be explained, where it cannot
    state: Result<Taken, String>,
    /// what became of it there
    done: Option<(Fate, Vec<u8>)>,
}

/// A packet that fits, with what it met.
pub struct Caught {
    worker: usize,
    packet: Packet,
    hops: Vec<Hop>,
    fate: Fate,
    decided: usize,
}

/// What a worker has to say.
pub enum Event {
    /// a packet that fits
    Caught(Box<Caught>),
    /// the chain has changed: nothing is traced any more
    Changed,
}

impl Tracing {
    /// Of these functions, so many packets.
    #[must_use]
    pub fn new(
        functions: Vec<Option<Function>>,
        topology: Topology,
        ports: Vec<String>,
        filter: Filter,
        count: u64,
    ) -> Self {
        Self {
            functions,
            topology,
            ports,
            filter,
            left: AtomicI64::new(i64::try_from(count).unwrap_or(i64::MAX)),
            looked: AtomicU64::new(0),
            passed: AtomicU64::new(0),
        }
    }

    /// The place of an element in the topology.
    fn place(&self, id: u64) -> Option<usize> {
        let of = |f: &Option<Function>| f.as_ref().is_some_and(|f| f.id == id);
        self.functions.iter().position(of)
    }

    fn port(&self, port: u32) -> &str {
        self.ports.get(port as usize).map_or("", String::as_str)
    }

    /// A fate in words, in the run's ports.
    fn fate(&self, fate: Fate, decided: usize) -> String {
        match (fate, self.functions.get(decided)) {
            (Fate::Forwarded(port), _) => format!("forwarded to {}", self.port(port)),
            (_, Some(Some(function))) => function.part().fate(fate).0,
            (_, _) => "dropped".into(),
        }
    }

    /// The explanation of a packet. None where another worker has changed what it met before its code came to it, so that its
    /// path cannot be told.
    ///
    /// # Errors
    /// The interpreter cannot say what it did.
    pub fn explain(&self, caught: &Caught) -> Result<Option<Explanation>, ExplainError> {
        let parts = self.functions.iter();
        let parts = parts.map(|f| f.as_ref().map(Function::part));
        let parts: Vec<Option<Part<'_>>> = parts.collect();
        let (mut hops, mut met, mut known, mut missing) = (Vec::new(), Vec::new(), 0, Vec::new());
        for hop in &caught.hops {
            let (Some(Some(part)), Ok(taken)) = (parts.get(hop.element), &hop.state) else {
                missing.push(match &hop.state {
                    Err(why) => why.clone(),
                    Ok(_) => "an element that is no function has no lines".into(),
                });
                continue;
            };
            let mut from = Again(taken);
            let done =
                execute_from(part, &mut from, &hop.packet).map_err(|e| ExplainError::Failed {
                    element: part.name.clone(),
                    what: e.0,
                })?;
            let mut at = At::new((known, part), &hop.packet, done)?;
            if let Some((fate, bytes)) = &hop.done {
                if *fate != at.done.fate || *bytes != at.done.bytes {
                    return Ok(None);
                }
                at.fate = *fate;
            }
            met.push(hop.element);
            known += 1;
            hops.push(at);
        }
        // An element that the packet met twice is there twice.
        let of = |element: &usize| self.functions.get(*element)?.as_ref().map(Function::part);
        let met: Vec<Part<'_>> = met.iter().filter_map(of).collect();
        let case = Case {
            parts: &met,
            topology: &self.topology,
            ports: &self.ports,
            models: None,
        };
        let last = caught.hops.last().is_some_and(|h| h.state.is_ok());
        let gone = [Gone {
            element: if last {
                met.len().saturating_sub(1)
            } else {
                usize::MAX
            },
            fate: caught.fate,
            bytes: Vec::new(),
        }];
        let mut none = |_: &_| Ok(BTreeMap::new());
        let mut told = document(&case, &caught.packet, &hops, &gone, &mut none)?;
        if !last {
            told.verdict = self.fate(caught.fate, caught.decided);
        }
        told.notes.extend(missing);
        told.worker = Some(caught.worker);
        Ok(Some(told))
    }
}

/// State as it was taken.
struct Again<'t>(&'t Taken);

impl Source for Again<'_> {
    fn contents(&mut self, _: &Part<'_>, _: &Asked) -> Result<Vec<Option<Held>>, Failed> {
        Ok(self.0.contents.clone())
    }

    fn partial(&self, _: ObjectId) -> bool {
        false
    }

    fn whole(&mut self, _: ObjectId) {}

    fn estimate(&mut self, object: ObjectId, key: &[u8]) -> u32 {
        let found = self.0.estimates.get(&(object, key.to_vec()));
        found.copied().unwrap_or(0)
    }
}

/// State that runs: of large maps what a packet comes to.
pub(crate) struct Running<'i> {
    instance: &'i mut Instance,
    now: u64,
    /// by object: only the entries that are asked for
    partial: Vec<bool>,
    taken: Taken,
}

impl<'i> Running<'i> {
    pub(crate) fn new(program: &Program, instance: &'i mut Instance, now: u64) -> Self {
        let partial = program.objects.iter().enumerate();
        let partial = partial.map(|(i, o)| {
            let mut full = || instance.used(i).is_none_or(|used| used >= o.capacity);
            divides(o) && !full()
        });
        Self {
            partial: partial.collect(),
            instance,
            now,
            taken: Taken::default(),
        }
    }

    /// An object with the entries alone that were asked for.
    fn some(&mut self, id: ObjectId, asked: &Asked) -> Held {
        let keys = asked.iter().filter(|(object, _)| *object == id);
        let entries = keys.zip(0..).filter_map(|((_, key), place)| {
            let value = self.instance.get(id.0, key, self.now).ok().flatten()?;
            Some(Entry {
                place,
                key: key.clone(),
                value,
                stamp: self.now,
                ..Entry::default()
            })
        });
        Held {
            entries: entries.collect(),
            ..Held::default()
        }
    }
}

/// Whether an object is large, and its entries have nothing to do with each other as long as there is room.
fn divides(object: &StateObject) -> bool {
    let bytes = u64::from(object.key_bytes) + u64::from(object.value_bytes);
    let kind = object.kind;
    (*kind == map::KIND || *kind == hash::KIND)
        && object.timer.is_none()
        && object.expiry.is_none()
        && bytes.saturating_mul(object.capacity) > LARGE
}

impl Source for Running<'_> {
    fn contents(&mut self, part: &Part<'_>, asked: &Asked) -> Result<Vec<Option<Held>>, Failed> {
        let first = self.taken.contents.is_empty();
        for index in 0..part.program.objects.len() {
            let id = ObjectId(index);
            let partial = self.partial(id);
            let held = match (first || partial, partial) {
                (false, _) => continue,
                (true, true) => Some(self.some(id, asked)),
                (true, false) => content(part.program, self.instance, id, self.now)?,
            };
            match self.taken.contents.get_mut(index) {
                Some(place) => *place = held,
                None => self.taken.contents.push(held),
            }
        }
        Ok(self.taken.contents.clone())
    }

    fn partial(&self, object: ObjectId) -> bool {
        self.partial.get(object.0).copied().unwrap_or(false)
    }

    fn whole(&mut self, object: ObjectId) {
        if let Some(place) = self.partial.get_mut(object.0) {
            *place = false;
            // All are taken anew.
            self.taken.contents.clear();
        }
    }

    fn estimate(&mut self, object: ObjectId, key: &[u8]) -> u32 {
        let sum = estimate(self.instance, object, key, self.now);
        self.taken.estimates.insert((object, key.to_vec()), sum);
        sum
    }
}

/// Follows the packets of one worker.
pub struct Follower {
    tracing: Arc<Tracing>,
    worker: usize,
    events: SyncSender<Event>,
    /// packets on their way through the elements, by number
    on_way: BTreeMap<u64, (Packet, Vec<Hop>)>,
    seen: Instant,
    credit: i64,
    /// packets that passed by and are not told yet: who counts is not to meet other workers at each burst
    passed: u64,
}

impl Follower {
    /// For one worker, which says what it sees by these events.
    #[must_use]
    pub fn new(tracing: &Arc<Tracing>, worker: usize, events: SyncSender<Event>) -> Self {
        Self {
            tracing: tracing.clone(),
            worker,
            events,
            on_way: BTreeMap::new(),
            seen: Instant::now(),
            credit: CREDIT,
            passed: 0,
        }
    }

    fn spend(&mut self, since: Instant) {
        let spent = since.elapsed().as_nanos();
        self.credit = self
            .credit
            .saturating_sub(i64::try_from(spent).unwrap_or(i64::MAX));
    }
}

pub(crate) fn packet_of(sight: &Sight<'_>) -> Packet {
    Packet {
        number: sight.number,
        port: sight.port,
        time: sight.time,
        wire: sight.wire,
        frame: sight.frame.to_vec(),
    }
}

impl Observer for Follower {
    fn burst(&mut self, packets: usize) -> bool {
        let now = Instant::now();
        let passed = now.saturating_duration_since(self.seen).as_nanos() / u128::from(SHARE);
        self.seen = now;
        let passed = i64::try_from(passed).unwrap_or(i64::MAX);
        self.credit = self.credit.saturating_add(passed).min(CREDIT);
        self.on_way.clear();
        if self.tracing.left.load(Ordering::Relaxed) <= 0 {
            return false;
        }
        let looks = self.credit > 0;
        if looks {
            let looked = &self.tracing.looked;
            looked.fetch_add(packets as u64, Ordering::Relaxed);
        } else {
            self.passed += packets as u64;
        }
        if self.passed > 0 && (looks || self.passed >= TOLD) {
            let passed = std::mem::take(&mut self.passed);
            self.tracing.passed.fetch_add(passed, Ordering::Relaxed);
        }
        looks
    }

    fn follows(&mut self, packet: &Sight<'_>) -> Follow {
        let since = Instant::now();
        let fits = self.credit > 0
            && self.tracing.filter.fits(&Seen {
                frame: packet.frame,
                port: self.tracing.port(packet.port),
                fate: None,
            });
        if fits {
            let packet = packet_of(packet);
            self.on_way.insert(packet.number, (packet, Vec::new()));
        }
        self.spend(since);
        match fits {
            true => Follow::Apart,
            false => Follow::No,
        }
    }

    fn comes(&mut self, element: u64, state: Option<&mut Instance>, sight: &Sight<'_>) {
        if !self.on_way.contains_key(&sight.number) {
            return;
        }
        let since = Instant::now();
        let packet = packet_of(sight);
        let place = self.tracing.place(element);
        let function = place.and_then(|at| self.tracing.functions.get(at)?.as_ref());
        let state = match (function, state) {
            (Some(function), Some(instance)) => {
                // Timers that are due before the packet.
                instance.alarm(packet.time);
                let part = function.part();
                let mut running = Running::new(&function.program, instance, packet.time);
                let done = execute_from(&part, &mut running, &packet).map(|_| ());
                done.map(|()| running.taken)
                    .map_err(|e| format!("{}: {}", function.name, e.0))
            }
            (Some(function), None) => Err(format!(
                "{}: heavy keys are replicated beside the rest of its state, and not followed",
                function.name
            )),
            (None, _) => Err("an element that is no function has no lines".into()),
        };
        if let Some((_, hops)) = self.on_way.get_mut(&sight.number) {
            hops.push(Hop {
                element: place.unwrap_or(usize::MAX),
                packet,
                state,
                done: None,
            });
        }
        self.spend(since);
    }

    fn leaves(&mut self, _: u64, packet: &Sight<'_>, fate: Fate) {
        let way = self.on_way.get_mut(&packet.number);
        if let Some(hop) = way.and_then(|(_, hops)| hops.last_mut()) {
            hop.done = Some((fate, packet.frame.to_vec()));
        }
    }

    fn ends(&mut self, number: u64, fate: Fate, decided: &Decided<'_>) {
        let decided = decided.place;
        let Some((packet, hops)) = self.on_way.remove(&number) else {
            return;
        };
        let said = self.tracing.fate(fate, decided);
        let fits = self.tracing.filter.fits(&Seen {
            frame: &packet.frame,
            port: self.tracing.port(packet.port),
            fate: Some(&said),
        });
        // Never below nothing: what cannot be told is looked for again.
        let one = |left: i64| (left > 0).then(|| left - 1);
        let left = &self.tracing.left;
        let wanted = || left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one);
        if !fits || wanted().is_err() {
            return;
        }
        let caught = Caught {
            worker: self.worker,
            packet,
            hops,
            fate,
            decided,
        };
        // Nobody waits for packets in the worker's time: where too many wait, this one is looked for again.
        if self
            .events
            .try_send(Event::Caught(Box::new(caught)))
            .is_err()
        {
            self.tracing.left.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn changed(&mut self) -> bool {
        self.tracing.left.store(0, Ordering::Relaxed);
        // Where there is no room for it, the end of the channel says as much.
        let _ = self.events.try_send(Event::Changed);
        false
    }
}
