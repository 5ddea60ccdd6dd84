//! Context of a difference: the packet, what both sides did, and the entries that it looked up.
//!
//! Which entries those are, the interpreter says: it is given the state of a side just before the packet and
//! executes the program on it. Where it comes to the same verdict as the code did, its line is the verdict's.

use std::collections::BTreeSet;

use millrace_dataplane::module::KeyValue;
use millrace_dataplane::packet::{Fate, HEADROOM, TAILROOM};
use millrace_dataplane::runner::Timers;
use millrace_object::program::{Dialect, ObjectId, Program, Role};
use millrace_reference::{End, Machine};

use crate::compare::Kind;
use crate::copy::Copy;
use crate::findings::{Around, AtWorker, Content, Difference, Place};
use crate::lane::{Done, Lane};
use crate::modules::Modules;
use crate::run::{Case, VerifyError};
use crate::schedule::Schedule;
use crate::show;
use crate::sides::{Sides, Step};
use crate::state::EntryDifference;
use crate::trace::{Packet, Trace};

/// More steps than an admitted program executes.
const STEPS: u64 = 4_000_000;
/// Entries that are shown around a packet.
const MOST: usize = 16;
/// Entries of an object that the interpreter is given; beyond that it is not asked.
const MOST_ENTRIES: u64 = 1 << 20;

/// A packet that was treated differently.
pub fn difference(
    case: &Case<'_>,
    kind: Kind,
    step: &Step,
    packet: &Packet,
    prefix: Option<&str>,
) -> Difference {
    let (program, ports) = (case.program, case.ports.as_slice());
    let sequential = show::did(program, ports, &step.sequential.outcome);
    let parallel = show::did(program, ports, &step.parallel.outcome);
    let what = match (&step.why, kind) {
        (Some(why), _) => why.clone(),
        (None, Kind::Verdict) => format!(
            "the sequential program's packet was {}, worker {}'s was {}",
            sequential.fate, parallel.worker, parallel.fate
        ),
        (None, Kind::Records) => "other records were left".into(),
        (None, _) => format!(
            "{} on both sides, with other bytes",
            capitalised(&sequential.fate)
        ),
    };
    Difference {
        kind,
        what: format!("{}{what}", prefix.unwrap_or_default()),
        packet: Some(show::packet(ports, packet)),
        sequential: Some(sequential),
        parallel: Some(parallel),
        parts: None,
        state: Vec::new(),
    }
}

fn capitalised(text: &str) -> String {
    let mut letters = text.chars();
    match letters.next() {
        Some(first) => first.to_uppercase().chain(letters).collect(),
        None => String::new(),
    }
}

/// An entry that differs at the end.
pub fn entry(case: &Case<'_>, found: &EntryDifference, prefix: &str) -> Difference {
    let object = case.program.objects.get(found.object);
    let name = object.map_or("?", |o| o.name.as_str());
    let value = |v: &Vec<u8>| case.names.value(found.object, v);
    let workers: Vec<String> = found.parallel.iter().map(|p| p.0.to_string()).collect();
    let there = match (workers.as_slice(), &found.sequential) {
        ([], _) => "the sequential program has an entry that no worker has".to_owned(),
        ([one], None) => format!("worker {one} has an entry that the sequential program has not"),
        ([one], Some(_)) => format!("worker {one}'s entry has another value"),
        (many, _) => format!("workers {} have the entry", many.join(", ")),
    };
    let when = match found.later {
        0 => String::new(),
        later => format!(
            ", {} ms after the last packet: it expires at another time",
            later / 1_000_000
        ),
    };
    let held = |value: Option<String>| Content {
        before: None,
        after: value,
    };
    Difference {
        kind: Kind::State,
        what: format!("{prefix}`{name}` at the end: {there}{when}"),
        packet: None,
        sequential: None,
        parallel: None,
        parts: None,
        state: vec![Around {
            object: name.to_owned(),
            key: case.names.key(found.object, &found.key),
            sequential: held(found.sequential.as_ref().map(value)),
            parallel: found
                .parallel
                .iter()
                .map(|(worker, v)| AtWorker {
                    worker: *worker,
                    entry: held(Some(value(v))),
                })
                .collect(),
        }],
    }
}

/// Findings around a packet.
pub struct Found {
    state: Vec<Around>,
    parts: Option<Place>,
}

/// The interpreter's outcome.
struct Execution {
    fate: Option<Fate>,
    keys: BTreeSet<(ObjectId, Vec<u8>)>,
    trail: Vec<(usize, usize)>,
}

impl Found {
    /// Puts it where it belongs.
    pub fn put(self, difference: &mut Difference) {
        difference.state = self.state;
        difference.parts = self.parts;
    }
}

/// Goes through the trace up to a packet once more and looks at the state before and after it.
///
/// # Errors
/// The trace cannot be read.
pub fn look(
    case: &Case<'_>,
    modules: &Modules,
    trace: &mut dyn Trace,
    number: u64,
) -> Result<Option<Found>, VerifyError> {
    let mut pass = trace.open()?;
    let mut sides: Option<(Sides<'_>, Timers)> = None;
    let (mut at, mut clock) = (0, 0);
    while let Some((port, time, wire, frame)) = pass.next()? {
        let time = time.max(clock);
        clock = time;
        if sides.is_none() {
            let made = modules.sides(case, Schedule::Ingress, time)?;
            sides = Some((made, Timers::new(modules.timers(), time)));
        }
        let Some((sides, timers)) = &mut sides else {
            break;
        };
        for (moment, timer) in if timers.due(time) {
            timers.take(time)
        } else {
            Vec::new()
        } {
            sides.fire(timer, moment);
        }
        let packet = Packet {
            number: at,
            port,
            time,
            wire,
            frame: frame.to_vec(),
        };
        if at == number {
            return Ok(here(case, sides, &packet));
        }
        sides.work(std::slice::from_ref(&packet));
        at += 1;
    }
    Ok(None)
}

/// Looks at a packet that is next.
fn here(case: &Case<'_>, sides: &mut Sides<'_>, packet: &Packet) -> Option<Found> {
    let program = case.program;
    let now = packet.time;
    // Which worker it will be is known afterwards; all of them are asked before.
    let before: Vec<Option<Program>> = std::iter::once(sides.sequential.copies.first_mut())
        .flatten()
        .chain(&mut sides.parallel.copies)
        .map(|copy| with_globals(program, copy, now))
        .collect();
    let contents: Vec<Option<Contents>> = std::iter::once(sides.sequential.copies.first_mut())
        .flatten()
        .chain(&mut sides.parallel.copies)
        .map(|copy| contents(program, copy, now))
        .collect();
    let entries = |index: usize| contents.get(index).and_then(Option::as_ref);
    let step = sides.work(std::slice::from_ref(packet)).pop()?;
    let worker = step.parallel.outcome.worker as usize;
    let mut touched = BTreeSet::new();
    let mut execute = |index: usize, done: &Done| {
        let program = before.get(index)?.as_ref()?;
        let given = Packet {
            frame: done.given.clone(),
            ..packet.clone()
        };
        let mut execution = interpreted(case, program, entries(index)?, &given)?;
        touched.append(&mut execution.keys);
        // The interpreter has no ages and no random draws of the run's: it may have gone elsewhere.
        let same = execution.fate.is_none_or(|f| f == done.outcome.fate);
        same.then_some(execution.trail)
    };
    let one = execute(0, &step.sequential);
    let other = execute(1 + worker, &step.parallel);
    let parts = one.zip(other).and_then(|(a, b)| parting(program, &a, &b));
    let show = |object: usize, value: Option<Vec<u8>>| value.map(|v| case.names.value(object, &v));
    let was = |index: usize, object: usize, key: &Vec<u8>| {
        let entries = entries(index)?.get(object)?.iter();
        let found = entries.into_iter().find(|(k, _)| k == key)?;
        Some(found.1.clone())
    };
    let mut state = Vec::new();
    for (object, key) in touched.into_iter().take(MOST) {
        let Some(o) = program.objects.get(object.0) else {
            continue;
        };
        if o.kind.is_global() {
            continue;
        }
        let held = |lane: &mut Lane<'_>, at: usize, index: usize| Content {
            before: show(object.0, was(index, object.0, &key)),
            after: show(
                object.0,
                lane.copies
                    .get_mut(at)
                    .and_then(|c| c.get(object.0, &key, now)),
            ),
        };
        let sequential = held(&mut sides.sequential, 0, 0);
        let mut parallel = Vec::new();
        for at in 0..sides.parallel.copies.len() {
            let entry = held(&mut sides.parallel, at, 1 + at);
            let nothing = entry.before.is_none() && entry.after.is_none();
            if at == worker || !nothing {
                parallel.push(AtWorker {
                    worker: at as u32,
                    entry,
                });
            }
        }
        state.push(Around {
            object: o.name.clone(),
            key: case.names.key(object.0, &key),
            sequential,
            parallel,
        });
    }
    Some(Found { state, parts })
}

/// Entries by object.
type Contents = Vec<Vec<KeyValue>>;

fn contents(program: &Program, copy: &mut Copy, now: u64) -> Option<Contents> {
    let objects = program.objects.iter().enumerate();
    objects
        .map(|(i, _)| {
            if copy.count(i, now).is_some_and(|n| n > MOST_ENTRIES) {
                return None;
            }
            // What cannot be listed is empty for the interpreter.
            Some(copy.entries(i, now).unwrap_or_default())
        })
        .collect()
}

/// The program with the globals that a copy has now.
fn with_globals(program: &Program, copy: &mut Copy, now: u64) -> Option<Program> {
    let mut program = program.clone();
    for (i, object) in program.objects.iter_mut().enumerate() {
        if object.kind.is_global() && !object.read_only {
            let value = copy.entries(i, now).ok()?.pop();
            object.initial = value.map(|(_, v)| v).or(object.initial.take());
        }
    }
    Some(program)
}

/// The interpreter's outcome of a packet, and the entries that it asks for.
fn interpreted(
    case: &Case<'_>,
    program: &Program,
    contents: &Contents,
    packet: &Packet,
) -> Option<Execution> {
    let takes = |role| matches!(role, Role::Xdp | Role::OnPacket);
    let mut entries = program.entries.iter().filter(|e| takes(e.role));
    let entry = entries.nth(case.entry)?;
    let mut machine = Machine::exact(program);
    machine.advance(packet.time, STEPS).ok()?;
    for (i, (object, entries)) in program.objects.iter().zip(contents).enumerate() {
        if object.kind.is_global() || object.nesting.is_some() {
            continue;
        }
        for (key, value) in entries {
            machine.set(ObjectId(i), key, value);
        }
    }
    machine.ports(case.ports.len() as u32);
    machine.packet(&packet.frame, HEADROOM, packet.port);
    machine.tailroom(TAILROOM);
    machine.record();
    let end = machine.run(entry.function, entry.role, STEPS);
    let trail = machine.trail().to_vec();
    let keys = machine.take_log().before.into_keys().collect();
    let End::Verdict(verdict) = end.ok()? else {
        return None;
    };
    Some(Execution {
        fate: fate(program.dialect, verdict as u32, packet.port),
        keys,
        trail,
    })
}

/// The line of the last instruction that both executed before they went different ways.
fn parting(program: &Program, one: &[(usize, usize)], other: &[(usize, usize)]) -> Option<Place> {
    let differs = |(a, b): (&(usize, usize), &(usize, usize))| a != b;
    let at = one.iter().zip(other).position(differs)?;
    let (function, insn) = *one.get(at.checked_sub(1)?)?;
    let line = program.functions.get(function)?.lines.get(insn)?.as_ref()?;
    Some(Place {
        line: format!("{}:{}", line.file, line.line),
        source: line.text.to_string(),
    })
}

/// The fate of a verdict (docs/dialect.md); none for a redirect, whose target the program wrote elsewhere.
fn fate(dialect: Dialect, verdict: u32, port: u32) -> Option<Fate> {
    Some(match (dialect, verdict >> 24, verdict & 0xff_ffff) {
        (Dialect::Handlers, 0, reason) => Fate::Dropped(reason),
        (Dialect::Handlers, 1, to) => Fate::Forwarded(to),
        (Dialect::Handlers, 2, 0) => Fate::Flooded,
        (Dialect::Handlers, 3, 0) => Fate::Consumed,
        (Dialect::Handlers, 4, _) => Fate::Passed,
        (Dialect::Handlers, ..) => Fate::Aborted,
        (Dialect::Xdp, 0, 1) => Fate::Dropped(0),
        (Dialect::Xdp, 0, 2) => Fate::Passed,
        (Dialect::Xdp, 0, 3) => Fate::Forwarded(port),
        (Dialect::Xdp, 0, 4) => return None,
        (Dialect::Xdp, ..) => Fate::Aborted,
    })
}
