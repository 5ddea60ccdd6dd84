//! By which earlier packet an entry is as it is: the trace once more, with an eye on a few keys.
//!
//! After each packet the entries that are watched are compared with what they were. A write that leaves an entry as it was
//! is none that anybody could tell: what is said is since which packet it has been so.

use std::collections::{BTreeMap, BTreeSet};

use millrace_dataplane::module::Instance;
use millrace_object::program::ObjectId;
use millrace_verify::{Packet, Pass};

use crate::document::By;
use crate::element::{Element, Part};
use crate::execution::execute;
use crate::follow::{ExplainError, next, none};
use crate::walk::Walk;
use millrace_topology::Topology;

/// Most keys that are watched.
const MOST: usize = 64;
/// Most earlier packets whose line is looked for.
const LINES: usize = 16;

/// An entry that is watched.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Watched {
    /// which element's
    pub element: usize,
    /// the object
    pub object: ObjectId,
    /// its key
    pub key: Vec<u8>,
    /// when it was last refreshed, ns, where that is known
    pub stamp: Option<u64>,
}

/// What is found of it.
#[derive(Clone, Default, Debug)]
pub struct Found {
    /// the packet since which it is as it is
    pub changed: Option<By>,
    /// the packet that last refreshed it
    pub refreshed: Option<By>,
}

struct State {
    watched: Watched,
    value: Option<Vec<u8>>,
    /// number, time and frame of a packet
    changed: Option<(u64, u64, Vec<u8>)>,
    refreshed: Option<(u64, u64, Vec<u8>)>,
}

fn look(instance: &mut Instance, watched: &Watched, now: u64) -> Option<Vec<u8>> {
    instance
        .get(watched.object.0, &watched.key, now)
        .ok()
        .flatten()
}

/// Goes through the packets before one, and says of each watched entry what made it what it is.
///
/// # Errors
/// The trace cannot be read, or state cannot be made.
pub fn trace<'a>(
    parts: &'a [Part<'a>],
    topology: &'a Topology,
    open: &mut dyn FnMut() -> Result<Box<dyn Pass>, ExplainError>,
    until: &Packet,
    watched: &BTreeSet<Watched>,
) -> Result<BTreeMap<Watched, Found>, ExplainError> {
    let mut states: Vec<State> = (watched.iter().take(MOST))
        .map(|w| State {
            watched: w.clone(),
            value: None,
            changed: None,
            refreshed: None,
        })
        .collect();
    let mut out = BTreeMap::new();
    if states.is_empty() || until.number == 0 {
        return Ok(out);
    }
    let mut walk = Walk::new(parts, topology);
    let mut pass = open()?;
    let mut number = 0;
    let mut value = Vec::new();
    let mut packet = none();
    let mut begun = false;
    while number < until.number && next(pass.as_mut(), &mut walk, number, &mut packet)? {
        if !begun {
            begun = true;
            // What an object is before the first packet is no packet's.
            walk.begin(packet.time)?;
            for s in &mut states {
                if let Some(element) = walk.elements().get_mut(s.watched.element) {
                    s.value = look(&mut element.instance, &s.watched, packet.time);
                }
            }
        }
        let (time, frame) = (packet.time, &packet.frame);
        walk.past(&packet, &mut |index, element| {
            for s in states.iter_mut().filter(|s| s.watched.element == index) {
                let found =
                    element
                        .instance
                        .find(s.watched.object.0, &s.watched.key, time, &mut value);
                let now = matches!(found, Ok(true)).then_some(&value);
                let here = || (number, time, frame.clone());
                if now != s.value.as_ref() {
                    s.changed = Some(here());
                    s.value = now.cloned();
                } else if s.watched.stamp == Some(time) && s.value.is_some() {
                    s.refreshed = Some(here());
                }
            }
        })?;
        number += 1;
    }
    let wanted: BTreeSet<u64> = (states.iter())
        .flat_map(|s| [&s.changed, &s.refreshed])
        .flatten()
        .map(|b| b.0)
        .rev()
        .take(LINES)
        .collect();
    let lines = lines(parts, topology, open, &wanted, &states)?;
    for s in states {
        let by = |of: Option<(u64, u64, Vec<u8>)>| {
            of.map(|(packet, time, frame)| By {
                packet,
                before_ns: until.time.saturating_sub(time),
                line: lines
                    .get(&(packet, s.watched.object, s.watched.key.clone()))
                    .cloned(),
                headers: millrace_traffic::language::summarise(&frame),
            })
        };
        let found = Found {
            // One that put it there refreshed it, too.
            refreshed: by(s.refreshed.clone()),
            changed: by(s.changed.clone()),
        };
        out.insert(s.watched, found);
    }
    Ok(out)
}

type Lines = BTreeMap<(u64, ObjectId, Vec<u8>), String>;

/// The lines at which these packets touched the entries last.
fn lines<'a>(
    parts: &'a [Part<'a>],
    topology: &'a Topology,
    open: &mut dyn FnMut() -> Result<Box<dyn Pass>, ExplainError>,
    wanted: &BTreeSet<u64>,
    states: &[State],
) -> Result<Lines, ExplainError> {
    let mut out = Lines::new();
    let Some(last) = wanted.last().copied() else {
        return Ok(out);
    };
    let mut walk = Walk::new(parts, topology);
    let mut pass = open()?;
    let mut number = 0;
    let mut packet = none();
    while number <= last && next(pass.as_mut(), &mut walk, number, &mut packet)? {
        if !wanted.contains(&number) {
            walk.past(&packet, &mut |_, _| {})?;
            number += 1;
            continue;
        }
        walk.pass(&packet, &mut |hop, element: &mut Element<'a>| {
            if hop.done.is_some() {
                return Ok(());
            }
            // An earlier packet of which the interpreter cannot say anything has no line.
            let Ok(done) = execute(element, hop.packet) else {
                return Ok(());
            };
            for (touch, at) in done.log.touches.iter().zip(&done.log.touched_at) {
                let key = crate::steps::stored(element.part.program, touch.object, &touch.key);
                let of = |s: &&State| {
                    s.watched.element == hop.element
                        && s.watched.object == touch.object
                        && Some(&s.watched.key) == key.as_ref()
                };
                let reads = matches!(
                    touch.operation,
                    "load"
                        | "map_get"
                        | "map_lookup_elem"
                        | "allocator_get"
                        | "vector_at"
                        | "lpm_get"
                        | "sketch_count"
                );
                if reads || !states.iter().any(|s| of(&s)) {
                    continue;
                }
                let index = usize::try_from(*at).unwrap_or(usize::MAX).wrapping_sub(1);
                let insn = done.trail.get(index);
                let line = insn.and_then(|i| {
                    element
                        .part
                        .program
                        .functions
                        .get(i.0)?
                        .lines
                        .get(i.1)?
                        .as_ref()
                });
                if let (Some(line), Some(key)) = (line, key) {
                    out.insert((number, touch.object, key), line.place());
                }
            }
            Ok(())
        })?;
        number += 1;
    }
    Ok(out)
}
