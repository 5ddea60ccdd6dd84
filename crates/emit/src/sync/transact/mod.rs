//! Treatment `transact`: some objects are one for all workers, and packets of several workers write different entries of
//! them at a time (docs/transact.md, fastpath/sync/transact.h).
//!
//! Each packet program is there twice:
//!
//! - `attempt`, whose operations on shared maps note the version words that they read and keep what they write to the packet.
//!   It commits at the first step from which no access to what is shared can be reached any more, and ends in
//!   `TRANSACT_AGAIN` where it met another core, or comes to a step that runs alone;
//! - `run`, the program as one worker has it, for a packet that holds all lines of the lock.
//!
//! Until an attempt has committed, nothing that it does may show (`Attempting`): as under the lock, a store to the packet or to
//! the worker's own state keeps what it overwrites, and a call with another effect makes the packet run alone. Stores to values
//! of shared maps go to private copies. Lookups that each packet comes to at most once keep their words in locals of the attempt,
//! up to four of them (`attempt::Few`).
//!
//! Shared maps have the functions of `fastpath/state/shared_hash.h`, allocators those of `shared_allocator.h`, vectors
//! those of `shared_vector.h`. Objects of other kinds, and those that the placement locks,
//! are as under the lock: packets read them beside each other, and one that changes them runs alone. Iteration and
//! locks in values run alone, too, the sets whose expiry runs a function (`ON_EXPIRY`) are as under the lock, with their expiries as
//! events that a packet to whose time one is due runs before it, alone, and so do handlers without packets that work on shared state, and programs with tail calls or
//! timers in values. Each reason is named and counted (`alone.rs`).

mod alone;
mod attempt;
mod burst;
mod text;

use std::collections::{BTreeMap, BTreeSet};

use millrace_check::facts::Timed;
use millrace_object::program::{ObjectId, Role, StateObject};
use millrace_object::state;
use millrace_place::Held;

use super::lock::effects::reads_clock;
use super::lock::reader::{Points, Writer};
use super::lock::{called, handler_shares, obstacle, shares_moments};
use super::sites::Sites;
use super::{Bodies, Common, Hooks, Input, Test, Treatment};
use crate::codegen::{Burst, Slice, Unit, takes_packets};
use crate::error::Error;
use alone::{EVENT, Whys};
use attempt::Attempting;

/// The kind whose functions an object has that packets may work on beside each other; none of other kinds.
fn shared_kind(object: &StateObject) -> Option<&'static str> {
    if object.kind.per_cpu || object.has_moments() {
        return None;
    }
    match object.kind {
        kind if kind.is_table() && !kind.evicts => Some("shared_hash"),
        kind if kind.leases() => Some("shared_allocator"),
        kind if *kind == state::vector::KIND => Some("shared_vector"),
        _ => None,
    }
}

/// Workers whose packets are transactions.
struct Transact {
    shared: BTreeSet<ObjectId>,
    /// those of them whose entries have version words, with the kind whose functions they have
    maps: BTreeMap<ObjectId, &'static str>,
    /// by entry
    bodies: Vec<Body>,
    /// by timer in the value of a map
    timers: Vec<Writer>,
    /// programs compute with the packet's time
    clock: bool,
    /// steps that run alone, in words
    whys: Vec<String>,
    /// where what is due at moments of its own is in shared objects, the number of that reason to run alone
    event: Option<usize>,
    /// such moments may come out of order: timers in a worker's own objects
    floor: bool,
    sites: Sites,
    test: Option<Test>,
}

/// An entry's.
struct Body {
    /// none of programs that run alone
    attempt: Option<Attempting>,
    alone: Writer,
    once: bool,
}

/// For placements that have an object in transactions.
pub(super) fn make(input: &Input) -> Result<Option<Box<dyn Treatment>>, Error> {
    let Input {
        program,
        checked,
        sharing,
        ..
    } = input;
    let places = || (0..).map(ObjectId).zip(&sharing.placement.objects);
    let of = |held: Held| -> BTreeSet<ObjectId> {
        let found = places().filter(|(_, place)| place.held == held);
        found.map(|(id, _)| id).collect()
    };
    let mut shared = of(Held::Transacted);
    if shared.is_empty() {
        return Ok(None);
    }
    let kind = |id: &ObjectId| Some((*id, shared_kind(program.objects.get(id.0)?)?));
    let maps: BTreeMap<ObjectId, &'static str> = shared.iter().filter_map(kind).collect();
    let worded: BTreeSet<ObjectId> = maps.keys().copied().collect();
    shared.extend(of(Held::Locked));
    let unsupported = |what: String| Error::Unsupported {
        place: program.name.clone(),
        what,
    };
    for id in &shared {
        if let Some(what) = obstacle(program, checked, *id) {
            let name = called(program, *id);
            return Err(unsupported(format!(
                "sharing {name} in transactions ({what})"
            )));
        }
    }
    let mut whys = Whys::default();
    let mut sites = Sites::new(sharing.profile);
    let test = sharing.test.is_some();
    let expires = |t: &Timed| t.role(program) == Role::Expiry;
    let tries = !input.tails && checked.timers.iter().all(expires);
    let moments = shares_moments(program, checked, &shared)?;
    let event = moments.then(|| whys.number(EVENT.to_owned()));
    let mut bodies = Vec::new();
    for (entry, whole) in program.entries.iter().zip(input.wholes) {
        let packets = takes_packets(entry.role);
        let points = || Points::of(whole, &shared, test);
        bodies.push(Body {
            attempt: (tries && packets).then(|| {
                Attempting::of(whole, &shared, &worded, points(), (&mut whys, &mut sites))
            }),
            alone: Writer(points()),
            once: !packets && handler_shares(whole, &shared, entry.function.0)?,
        });
    }
    let mut timers = Vec::new();
    for timed in &checked.timers {
        let slice = Slice::whole(program, &timed.flow, false)?;
        timers.push(Writer(Points::of(&slice, &shared, test)));
    }
    if !tries {
        whys.number(match input.tails {
            true => "a program with tail calls".to_owned(),
            false => "a program with timers in values".to_owned(),
        });
    }
    Ok(Some(Box::new(Transact {
        test: sharing.test,
        clock: checked.flows.iter().any(reads_clock),
        whys: whys.0,
        event,
        floor: !checked.timers.iter().all(expires),
        sites,
        shared,
        maps,
        bodies,
        timers,
    })))
}

impl Transact {
    /// Objects in which lookups have their words in places of the program's own.
    fn finds(&self) -> BTreeSet<ObjectId> {
        let attempts = self.bodies.iter().filter_map(|body| body.attempt.as_ref());
        attempts.flat_map(Attempting::finds).copied().collect()
    }

    /// The attempt of an entry; none of one that runs alone.
    fn attempt(&self, burst: &Burst) -> Option<&Attempting> {
        let entries = self.bodies.iter().zip(&burst.unit.program.entries);
        let mut packets = entries.filter(|(_, entry)| takes_packets(entry.role));
        packets.nth(burst.index)?.0.attempt.as_ref()
    }

    /// Whether it is noted what packets read and wrote.
    fn logs(&self) -> bool {
        self.test.is_some_and(|test| test.log)
    }
}

impl Treatment for Transact {
    fn title(&self) -> &'static str {
        "treatment transact (packets of several workers are transactions)"
    }

    fn shares(&self, object: ObjectId) -> bool {
        self.shared.contains(&object)
    }

    fn kind(&self, object: ObjectId) -> Option<&'static str> {
        self.maps.get(&object).copied()
    }

    fn timed(&self, object: ObjectId) -> bool {
        self.clock && self.maps.contains_key(&object)
    }

    fn common(&self) -> Option<Common> {
        Some(Common::LOCK)
    }

    fn bodies(&self, entry: usize) -> Bodies<'_> {
        let Body { attempt, alone, .. } = &self.bodies[entry];
        Bodies::attempted(attempt.as_ref().map(|a| a as &dyn Hooks), alone)
    }

    fn timer(&self, timer: usize) -> &dyn Hooks {
        &self.timers[timer]
    }

    fn shares_moments(&self) -> bool {
        self.event.is_some()
    }

    fn once(&self, entry: usize) -> bool {
        self.bodies[entry].once
    }

    fn includes(&self, unit: &Unit) -> String {
        text::includes(unit, self.whys.len(), self.test, self.sites.any())
            + &text::sets_declared(unit, &self.finds())
    }

    fn members(&self) -> Vec<&'static str> {
        [
            "struct mr_shared *shared;",
            "u32 core; /* which of the workers that share it */",
            "struct transact transact; /* of the packet at hand */",
            "u64 whys[WHYS]; /* packets that ran alone, by reason */",
        ]
        .into_iter()
        .chain(self.logs().then_some("struct accesses log;"))
        .chain(self.sites.member())
        .collect()
    }

    fn create(&self) -> &'static str {
        match self.logs() {
            true => text::CREATE_LOGGED,
            false if self.sites.any() => text::CREATE_PROFILED,
            false => text::CREATE,
        }
    }

    fn functions(&self, unit: &Unit) -> String {
        text::sets_defined(unit, &self.finds())
            + &text::ageing(unit, self.clock)
            + &text::seen(unit, &self.whys, self.logs())
            + &self.sites.seen(unit, true)
    }

    fn table(&self) -> [String; 2] {
        let members = "\t.transact = &transact,\n".to_owned() + self.sites.table();
        [members, String::new()]
    }

    fn burst(&self, burst: &Burst) -> String {
        let order = self.test.is_some() && !self.logs();
        burst::bursts(
            burst,
            &burst::How {
                clock: self.clock,
                event: self.event,
                floor: self.floor,
                few: self.attempt(burst).is_some_and(Attempting::is_few),
                undoes: self.attempt(burst).is_some_and(Attempting::undoes),
            },
            burst::Test {
                order,
                log: self.logs(),
            },
        )
    }

    fn control(&self) -> [&'static str; 2] {
        [super::lock::text::WRITE, super::lock::text::WRITE_END]
    }

    fn handler(&self) -> [&'static str; 2] {
        [
            match self.clock {
                true => text::HANDLER_CLOCK,
                false => text::HANDLER,
            },
            super::lock::text::WRITE_END,
        ]
    }
}
