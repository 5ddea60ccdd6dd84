//! Treatment `lock`: some objects are one for all workers of a process, guarded by a read/write lock with a
//! line for each core (fastpath/sync/lock.h); each worker has its own instance of the others.
//!
//! Pereira et al., Automatic Parallelization of Software Network Functions (NSDI 2024), section 4. A packet
//! runs as a reader; where it would change a shared object it stops, all lines are taken, and it runs
//! again from the beginning as the only one. So each packet program is there twice:
//!
//! - `run`, the program as one worker has it, for the one who has all lines;
//! - `reader`, which ends in `LOCK_RESTART` at the first step that could change a shared object.
//!
//! Until it is sure that a reader comes to its end, nothing that it does may show (`Reader`): a store to the
//! packet or to the worker's own state from which such a step can be reached keeps what it overwrites
//! (fastpath/sync/undo.h), a refresh of an own entry its stamp, and a call with another effect from which one can be
//! reached makes a writer of the packet at once. Draws are a function of the packet's number and begin again, so
//! that the second run meets what the first one met. Time may have gone on: it never goes back in the order of
//! commits (fastpath/sync/lock.h), so that a packet may get a later time than it came with. A burst is one hold of the reader's line, which is
//! given up between packets when a writer waits; value pointers live within a packet, so under the lock.
//!
//! What is written when: inserting, deleting, overwriting, leasing, and storing through a value pointer
//! write, unless what is to be there is there already, or nothing is free and nothing will have expired by then: a
//! refusal is counted per core. So does every lookup in an LRU map (it moves the entry),
//! every atomic operation, a lock in a value, adding to a sketch, and all that queues, stacks and ring
//! buffers do but to look. Refreshing an entry of a map or a lease does not: each core has its own stamps
//! (fastpath/sync/stamps.h), and a reader becomes a writer only where another core's might keep alive what
//! its own do not. `EVERY`, `ON_START` and `ON_STOP` write if they work on shared objects.
//! A program with tail calls or with timers in values runs all its packets as writers.
//!
//! The expiry of a packet set is an event in the order of commits. Where the set is shared, what is due is one queue
//! for all workers: a reader to whose packet something is due becomes a writer, and a writer first fires it. So no packet
//! commits behind an event at an earlier time, and who replays the packets in their order meets each event where it was.
//! Where the set is each worker's own, so is all that its `ON_EXPIRY` works on (`together`), and a reader fires it.
//!
//! A counter that is only added to needs no lock: give each worker its own and add them up when they are read
//! (treatment `merge`).

mod burst;
pub(super) mod effects;
mod handlers;
pub(super) mod reader;
pub(super) mod text;

use std::collections::BTreeSet;

use millrace_check::Checked;
use millrace_object::Program;
use millrace_object::program::{ObjectId, Role};
use millrace_place::Held;

pub use handlers::{apart, handled, obstacle, repeated, together};

use super::sites::Sites;
use super::{Bodies, Common, Hooks, Input, Test, Treatment};
use crate::codegen::{Burst, Slice, Unit, takes_packets};
use crate::error::Error;
use effects::reads_clock;
use reader::{Points, Reader, Writer};

/// Workers that share some objects under a lock.
struct Lock {
    shared: BTreeSet<ObjectId>,
    /// by entry
    bodies: Vec<Locked>,
    /// by timer in the value of a map
    timers: Vec<Writer>,
    /// what is due at moments of its own is in shared objects
    moments: bool,
    /// such moments may come out of order: timers in a worker's own objects that work on shared ones
    floor: bool,
    /// readers keep what they overwrite
    undo: bool,
    /// programs read the packet's time as a number
    clock: bool,
    sites: Sites,
    test: Option<Test>,
}

/// The bodies of an entry.
struct Locked {
    reader: Option<Reader>,
    writer: Writer,
    once: bool,
}

/// For placements that lock an object.
pub(super) fn make(input: &Input) -> Result<Option<Box<dyn Treatment>>, Error> {
    let Input {
        program,
        checked,
        sharing,
        ..
    } = input;
    let places = (0..).map(ObjectId).zip(&sharing.placement.objects);
    let locked = places.filter(|(_, place)| place.held == Held::Locked);
    let shared: BTreeSet<ObjectId> = locked.map(|(id, _)| id).collect();
    if shared.is_empty() {
        return Ok(None);
    }
    for id in &shared {
        let name = called(program, *id);
        if let Some(what) = obstacle(program, checked, *id) {
            return Err(Error::Unsupported {
                place: program.name.clone(),
                what: format!("sharing {name} under the lock ({what})"),
            });
        }
    }
    let test = sharing.test.is_some();
    let mut sites = Sites::new(sharing.profile);
    let expires = |t: &millrace_check::facts::Timed| t.role(program) == Role::Expiry;
    let reads = !input.tails && checked.timers.iter().all(expires);
    let moments = shares_moments(program, checked, &shared)?;
    let mut bodies = Vec::new();
    for (entry, whole) in program.entries.iter().zip(input.wholes) {
        let packets = takes_packets(entry.role);
        let points = || Points::of(whole, &shared, test);
        bodies.push(Locked {
            reader: (reads && packets).then(|| Reader::of(whole, &shared, points(), &mut sites)),
            writer: Writer(points()),
            once: !packets && handler_shares(whole, &shared, entry.function.0)?,
        });
    }
    let mut timers = Vec::new();
    for timed in &checked.timers {
        let slice = Slice::whole(program, &timed.flow, false)?;
        timers.push(Writer(Points::of(&slice, &shared, test)));
    }
    Ok(Some(Box::new(Lock {
        undo: bodies
            .iter()
            .filter_map(|b| b.reader.as_ref())
            .any(Reader::undoes),
        clock: checked.flows.iter().any(reads_clock),
        test: sharing.test,
        sites,
        moments,
        floor: !checked.timers.iter().all(expires),
        shared,
        bodies,
        timers,
    })))
}

impl Treatment for Lock {
    fn title(&self) -> &'static str {
        "treatment lock (workers share state)"
    }

    fn shares(&self, object: ObjectId) -> bool {
        self.shared.contains(&object)
    }

    fn common(&self) -> Option<Common> {
        Some(Common {
            member: match self.sites.any() {
                true => "\tstruct lock lock;\n\tu32 site; /* of the last writer */\n",
                false => Common::LOCK.member,
            },
            ..Common::LOCK
        })
    }

    fn bodies(&self, entry: usize) -> Bodies<'_> {
        let Locked { reader, writer, .. } = &self.bodies[entry];
        Bodies::attempted(reader.as_ref().map(|r| r as &dyn Hooks), writer)
    }

    fn timer(&self, timer: usize) -> &dyn Hooks {
        &self.timers[timer]
    }

    fn shares_moments(&self) -> bool {
        self.moments
    }

    fn once(&self, entry: usize) -> bool {
        self.bodies[entry].once
    }

    fn includes(&self, unit: &Unit) -> String {
        text::includes(unit, self.undo, self.test, self.sites.any())
    }

    fn members(&self) -> Vec<&'static str> {
        let mut members = vec![
            "struct mr_shared *shared;",
            "u32 core; /* which of the workers that share it */",
        ];
        members.extend(
            self.undo
                .then_some("struct undo undo; /* of the packet at hand */"),
        );
        if let Some(member) = self.sites.member() {
            members.extend([
                member,
                "u32 site; /* at which the packet became a writer */",
            ]);
        }
        members
    }

    fn create(&self) -> &'static str {
        text::CREATE
    }

    fn functions(&self, unit: &Unit) -> String {
        text::ageing(unit) + &self.sites.seen(unit, false)
    }

    fn table(&self) -> [String; 2] {
        [self.sites.table().to_owned(), String::new()]
    }

    fn burst(&self, burst: &Burst) -> String {
        let how = burst::How {
            undo: self.undo,
            clock: self.clock,
            moments: self.moments,
            floor: self.floor,
            profile: self.sites.any(),
        };
        burst::bursts(burst, &how)
    }

    fn control(&self) -> [&'static str; 2] {
        [text::WRITE, text::WRITE_END]
    }

    fn handler(&self) -> [&'static str; 2] {
        [text::HANDLER, text::WRITE_END]
    }
}

/// Whether entries whose expiry runs a function are in shared objects.
///
/// # Errors
/// [`Error::Unsupported`] if some are and some are not, or their function works on shared objects and on others.
pub(super) fn shares_moments(
    program: &Program,
    checked: &Checked,
    shared: &BTreeSet<ObjectId>,
) -> Result<bool, Error> {
    let unsupported = |what: String| Error::Unsupported {
        place: program.name.clone(),
        what,
    };
    let mut found = None;
    for timed in &checked.timers {
        if timed.role(program) != Role::Expiry {
            if shared
                .iter()
                .any(|o| program.objects.get(o.0).is_some_and(|o| o.expiry.is_some()))
            {
                return Err(unsupported(
                    "timers in values beside a packet set that is shared under the lock".into(),
                ));
            }
            continue;
        }
        let all = effects::touched(program, &timed.flow);
        let written = |id: &&ObjectId| program.objects.get(id.0).is_some_and(|o| !o.read_only);
        let (mut common, mut own) = (false, false);
        for id in all.iter().filter(written).chain([&timed.object]) {
            match shared.contains(id) {
                true => common = true,
                false => own = true,
            }
        }
        if common && own || found.is_some_and(|found| found != common) {
            let set = called(program, timed.object);
            return Err(unsupported(format!(
                "the expiry of {set}, which works on objects shared under the lock and on each worker's own; treat both \
                 alike"
            )));
        }
        found = Some(common);
    }
    Ok(found.unwrap_or(false))
}

pub(super) fn called(program: &Program, object: ObjectId) -> &str {
    program
        .objects
        .get(object.0)
        .map_or("?", |o| o.name.as_str())
}

/// Whether a handler works on shared state.
///
/// # Errors
/// [`Error::Unsupported`] if on each worker's own as well: it can run neither once nor once a worker.
pub(super) fn handler_shares(
    whole: &Slice,
    shared: &BTreeSet<ObjectId>,
    function: usize,
) -> Result<bool, Error> {
    let program = whole.program;
    let touched = effects::touched(program, whole.flow);
    let common = touched.iter().find(|o| shared.contains(o));
    let own = touched.iter().find(|o| {
        let object = program.objects.get(o.0);
        !shared.contains(o) && object.is_some_and(|o| !o.read_only)
    });
    match (common, own) {
        (Some(common), Some(own)) => Err(Error::Unsupported {
            place: program.name.clone(),
            what: format!(
                "{}, which works on {} (shared under the lock) and on {} (each worker's own); treat both alike",
                program
                    .functions
                    .get(function)
                    .map_or("entry", |f| f.name.as_str()),
                called(program, *common),
                called(program, *own)
            ),
        }),
        (common, _) => Ok(common.is_some()),
    }
}
