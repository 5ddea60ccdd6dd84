//! The reference interpreter takes over the state of emitted code and executes one packet.

use std::collections::BTreeSet;

use millrace_dataplane::module::{Instance, Keeping};
use millrace_dataplane::packet::{Fate, HEADROOM, TAILROOM};
use millrace_object::contract::Holds;
use millrace_object::program::{Dialect, ObjectId, Program};
use millrace_reference::{End, Entry, Held, Log, Machine, Target};
use millrace_state::{Form, What};
use millrace_verify::Packet;

use crate::element::Element;

/// More steps than an admitted program executes.
const STEPS: u64 = 4_000_000;
/// Times that a packet is executed again because it asked for another estimate.
const ROUNDS: usize = 8;

/// Why the interpreter cannot say what a packet does.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Failed(pub String);

/// One packet executed by the interpreter.
pub struct Execution<'a> {
    /// the interpreter, after it
    pub machine: Machine<'a>,
    /// what happened to state, branches, stores
    pub log: Log,
    /// function and instruction of each step
    pub trail: Vec<(usize, usize)>,
    /// the packet's fate
    pub fate: Fate,
    /// the frame afterwards
    pub bytes: Vec<u8>,
    /// when each entry that it came to was last refreshed, ns, where its kind says so
    pub stamps: Vec<(ObjectId, Vec<u8>, u64)>,
}

/// Executes a packet in the state that an element has now, its timers fired.
///
/// # Errors
/// The state cannot be taken over exactly, or the interpreter has no meaning for something that the packet does.
pub fn execute<'a>(element: &mut Element<'a>, packet: &Packet) -> Result<Execution<'a>, Failed> {
    let part = element.part;
    let program = part.program;
    let entry = part.running().and_then(|at| program.entries.get(at));
    let Some(entry) = entry else {
        return Err(Failed("no program of it takes packets".into()));
    };
    let now = packet.time;
    let contents = contents(program, &mut element.instance, now)?;
    // Sketches and filters do not list what they hold: they are asked for what the packet asks for.
    let mut asked: BTreeSet<(ObjectId, Vec<u8>)> = BTreeSet::new();
    for _ in 0..ROUNDS {
        let mut machine = Machine::exact(program);
        machine.seed(part.config.sketch_seed);
        machine.numbered(packet.number);
        machine.comes(now);
        for (i, held) in contents.iter().enumerate() {
            let Some(held) = held else { continue };
            let object = ObjectId(i);
            if machine.takes(object) && !machine.take(object, held.clone()) {
                let name = program.objects.get(i).map_or("?", |o| o.name.as_str());
                return Err(Failed(format!(
                    "the state of `{name}` cannot be taken over"
                )));
            }
        }
        for (object, key) in &asked {
            let found = element.instance.get(object.0, key, now).ok().flatten();
            let sum = found.and_then(|v| v.first_chunk().map(|b| u32::from_le_bytes(*b)));
            machine.estimate(*object, key, sum.unwrap_or(0));
        }
        machine.ports(part.ports.len() as u32);
        machine.packet(&packet.frame, HEADROOM, packet.port);
        machine.tailroom(TAILROOM);
        machine.record();
        let end = machine.run(entry.function, entry.role, STEPS);
        let trail = machine.trail().to_vec();
        let log = machine.take_log();
        let end = end.map_err(|v| Failed(format!("the interpreter: {}", v.0)))?;
        let End::Verdict(verdict) = end else {
            return Err(Failed(format!("it takes more than {STEPS} instructions")));
        };
        let estimates = |id: &ObjectId| {
            let object = program.objects.get(id.0);
            object.is_some_and(|o| o.kind.holds == Holds::Estimates)
        };
        let more = log.before.keys().filter(|(id, _)| estimates(id));
        let before = asked.len();
        asked.extend(more.cloned());
        if asked.len() > before {
            continue;
        }
        let fate = fate(
            program.dialect,
            verdict as u32,
            packet.port,
            machine.target(),
        );
        let stamps = log.before.keys().filter_map(|(id, key)| {
            let held = contents.get(id.0)?.as_ref()?;
            let object = program.objects.get(id.0)?;
            (object.expire_after > 0).then_some(())?;
            let number = |e: &&Entry| match object.kind.leases() {
                true => index(object.first + e.place, key.len()) == *key,
                false => e.key == *key,
            };
            let found = held.entries.iter().find(number)?;
            Some((*id, key.clone(), found.stamp))
        });
        let stamps = stamps.collect();
        return Ok(Execution {
            bytes: machine.packet_bytes().to_vec(),
            machine,
            log,
            trail,
            fate,
            stamps,
        });
    }
    Err(Failed("it asks a sketch for another key each time".into()))
}

fn index(number: u64, bytes: usize) -> Vec<u8> {
    let mut key = number.to_le_bytes().to_vec();
    key.resize(bytes, 0);
    key
}

/// The content of each object; none of what is handed over otherwise, or is as it was at start.
fn contents(
    program: &Program,
    instance: &mut Instance,
    now: u64,
) -> Result<Vec<Option<Held>>, Failed> {
    let mut out = Vec::new();
    for (i, object) in program.objects.iter().enumerate() {
        let known = instance.module().objects().get(i).map(|info| Form {
            key_bytes: info.key_bytes,
            value_bytes: info.value_bytes,
        });
        let (Keeping::All, Some(form)) = (instance.module().keeping(i), known) else {
            out.push(None);
            continue;
        };
        // What it counts is asked key by key; what it filters cannot be.
        if object.kind.holds == Holds::Estimates {
            out.push(None);
            continue;
        }
        if object.kind.membership() {
            return Err(Failed(format!(
                "`{}` is a {}, of whose values nothing is kept: what it answers cannot be said beforehand",
                object.name, object.kind.name
            )));
        }
        let content = instance.save(i, now).map_err(|e| Failed(e.to_string()))?;
        let mut held = Held::default();
        for piece in content.pieces(form) {
            let piece =
                piece.map_err(|e| Failed(format!("the state of `{}`: {e}", object.name)))?;
            match piece.what {
                What::Head => {
                    held.place = piece.place;
                    held.started = piece.order;
                    if object.kind.is_global() {
                        held.bytes = vec![0; form.value_bytes];
                    }
                }
                What::Entry => held.entries.push(Entry {
                    place: piece.place,
                    key: piece.key.to_vec(),
                    value: piece.value.to_vec(),
                    stamp: piece.stamp,
                    order: piece.order,
                    due: (piece.due != u64::MAX).then_some(piece.due),
                    timer: (piece.callback > 0).then(|| {
                        let number = piece.callback.checked_sub(2);
                        number.map(|n| n as usize)
                    }),
                }),
                What::Free => {
                    let places = piece.place..piece.place.saturating_add(piece.length);
                    held.free.extend(places.map(|p| (p, piece.stamp)));
                }
                What::Bytes => {
                    let from = piece.place as usize;
                    let to = from.saturating_add(piece.value.len());
                    if let Some(bytes) = held.bytes.get_mut(from..to) {
                        bytes.copy_from_slice(piece.value);
                    }
                }
                What::End => {}
            }
        }
        out.push(Some(held));
    }
    Ok(out)
}

/// The fate of a verdict (docs/dialect.md).
fn fate(dialect: Dialect, verdict: u32, port: u32, target: Option<Target>) -> Fate {
    if dialect == Dialect::Handlers {
        return Fate::of_verdict(verdict);
    }
    match (verdict, target) {
        (4, Some(Target::Others)) => Fate::Flooded,
        (4, Some(Target::Host)) => Fate::Passed,
        (4, Some(Target::Socket)) => Fate::Consumed,
        (4, Some(Target::Nobody)) | (1, _) => Fate::Dropped(0),
        (4, Some(Target::Port(to))) => Fate::Forwarded(to),
        (2, _) => Fate::Passed,
        (3, _) => Fate::Forwarded(port),
        // A redirect to no interface's port: the host aborts it.
        (4, None) => Fate::Forwarded(u32::MAX),
        _ => Fate::Aborted,
    }
}
