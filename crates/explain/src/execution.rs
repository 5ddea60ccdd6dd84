//! The reference interpreter takes over the state of emitted code and executes one packet.

use std::collections::BTreeSet;

use millrace_dataplane::module::{Instance, Keeping};
use millrace_dataplane::packet::{Fate, HEADROOM, TAILROOM};
use millrace_object::contract::Holds;
use millrace_object::program::{Dialect, ObjectId, Program};
use millrace_reference::{End, Entry, Held, Log, Machine, Target};
use millrace_state::{Form, What};
use millrace_verify::Packet;

use crate::element::{Element, Part};

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

/// Where the interpreter has the state from that a packet meets.
pub(crate) trait Source {
    /// The content of each object, of those that hold much only these entries; none of what is asked key by key, or is as
    /// it was at start.
    fn contents(&mut self, part: &Part<'_>, asked: &Asked) -> Result<Vec<Option<Held>>, Failed>;
    /// Whether of an object only the entries are there that were asked for.
    fn partial(&self, object: ObjectId) -> bool;
    /// Of a keyed object of which only some entries are there: the packet does with it what needs all of them.
    fn whole(&mut self, object: ObjectId);
    /// What a sketch estimates.
    fn estimate(&mut self, object: ObjectId, key: &[u8]) -> u32;
}

/// Keys that a packet came to.
pub(crate) type Asked = BTreeSet<(ObjectId, Vec<u8>)>;

/// All of an instance's state.
struct All<'i> {
    instance: &'i mut Instance,
    now: u64,
    contents: Option<Vec<Option<Held>>>,
}

impl Source for All<'_> {
    fn contents(&mut self, part: &Part<'_>, _: &Asked) -> Result<Vec<Option<Held>>, Failed> {
        if self.contents.is_none() {
            self.contents = Some(contents(part.program, self.instance, self.now)?);
        }
        Ok(self.contents.clone().unwrap_or_default())
    }

    fn partial(&self, _: ObjectId) -> bool {
        false
    }

    fn whole(&mut self, _: ObjectId) {}

    fn estimate(&mut self, object: ObjectId, key: &[u8]) -> u32 {
        estimate(self.instance, object, key, self.now)
    }
}

/// What a sketch estimates now.
pub(crate) fn estimate(instance: &mut Instance, object: ObjectId, key: &[u8], now: u64) -> u32 {
    let found = instance.get(object.0, key, now).ok().flatten();
    let sum = found.and_then(|v| v.first_chunk().map(|b| u32::from_le_bytes(*b)));
    sum.unwrap_or(0)
}

/// Executes a packet in the state that an element has now, its timers fired.
///
/// # Errors
/// The state cannot be taken over exactly, or the interpreter has no meaning for something that the packet does.
pub fn execute<'a>(element: &mut Element<'a>, packet: &Packet) -> Result<Execution<'a>, Failed> {
    let mut all = All {
        instance: &mut element.instance,
        now: packet.time,
        contents: None,
    };
    execute_from(element.part, &mut all, packet)
}

/// The same with the state of a source.
pub(crate) fn execute_from<'a>(
    part: &Part<'a>,
    source: &mut dyn Source,
    packet: &Packet,
) -> Result<Execution<'a>, Failed> {
    let program = part.program;
    let entry = part.running().and_then(|at| program.entries.get(at));
    let Some(entry) = entry else {
        return Err(Failed("no program of it takes packets".into()));
    };
    let now = packet.time;
    // Sketches and filters do not list what they hold, and of much that is held only a little is needed: they are asked for
    // what the packet asks for.
    let mut asked = Asked::new();
    for _ in 0..ROUNDS {
        let contents = source.contents(part, &asked)?;
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
        let estimates = |id: &ObjectId| {
            let object = program.objects.get(id.0);
            object.is_some_and(|o| o.kind.holds == Holds::Estimates)
        };
        for (object, key) in asked.iter().filter(|(o, _)| estimates(o)) {
            machine.estimate(*object, key, source.estimate(*object, key));
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
        let mut again = false;
        for touch in &log.touches {
            if source.partial(touch.object) && !KEYED.contains(&touch.operation) {
                source.whole(touch.object);
                again = true;
            }
        }
        let of = |id: &ObjectId| estimates(id) || source.partial(*id);
        let more = log.before.keys().filter(|(id, _)| of(id));
        let before = asked.len();
        asked.extend(more.cloned());
        if asked.len() > before || again {
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
    Err(Failed("it asks for another key each time".into()))
}

/// Operations on one entry of a map, which need to know of no other one.
const KEYED: &[&str] = &[
    "map_get",
    "map_refresh",
    "map_put",
    "map_delete",
    "map_lookup_elem",
    "map_update_elem",
    "map_delete_elem",
    "load",
    "store",
    "atomic",
];

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
    let objects = 0..program.objects.len();
    let each = objects.map(|i| content(program, instance, ObjectId(i), now));
    each.collect()
}

/// The content of one object; none of what is handed over otherwise, or is as it was at start.
pub(crate) fn content(
    program: &Program,
    instance: &mut Instance,
    id: ObjectId,
    now: u64,
) -> Result<Option<Held>, Failed> {
    let (i, Some(object)) = (id.0, program.objects.get(id.0)) else {
        return Ok(None);
    };
    let known = instance.module().objects().get(i).map(|info| Form {
        key_bytes: info.key_bytes,
        value_bytes: info.value_bytes,
    });
    let (Keeping::All, Some(form)) = (instance.module().keeping(i), known) else {
        return Ok(None);
    };
    // What it counts is asked key by key; what it filters cannot be.
    if object.kind.holds == Holds::Estimates {
        return Ok(None);
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
        let piece = piece.map_err(|e| Failed(format!("the state of `{}`: {e}", object.name)))?;
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
    Ok(Some(held))
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
