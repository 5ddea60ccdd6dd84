//! The explanation of one packet of a trace.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;

use millrace_dataplane::module::ModuleError;
use millrace_dataplane::packet::Fate;
use millrace_dataplane::runner::hex;
use millrace_model::exec::along::Along;
use millrace_model::model::Outcome;
use millrace_model::{Limits, kept};
use millrace_object::program::ObjectId;
use millrace_report::along::Words;
use millrace_topology::Topology;
use millrace_verify::{Packet, Pass, Shown, Trace, TraceError};

use crate::document::{Explanation, Left, Nearest, Step};
use crate::element::Part;
use crate::execution::{Execution, execute};
use crate::filter::{Filter, Seen};
use crate::history::{self, Found, Watched};
use crate::nearest;
use crate::steps::{self, Told};
use crate::walk::{Gone, Walk};

/// Most time for the model of a drop's nearest path.
const MODEL: Duration = Duration::from_secs(if cfg!(debug_assertions) { 60 } else { 5 });

/// Why there is no explanation.
#[derive(Debug, thiserror::Error)]
pub enum ExplainError {
    /// the trace cannot be read
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// state cannot be made
    #[error(transparent)]
    Module(#[from] ModuleError),
    /// there is no such packet
    #[error("{what}")]
    NoPacket {
        /// how many packets there are, and what was asked for
        what: String,
        /// what to do
        help: String,
    },
    /// the interpreter cannot say
    #[error("`{element}`: {what}")]
    Failed {
        /// the element
        element: String,
        /// why
        what: String,
    },
}

/// Which packet of a trace.
#[derive(Clone, Debug)]
pub enum Which {
    /// the one of this number, from 0
    Number(u64),
    /// the first, the last, or the n-th (from 1) that fits
    First(Filter),
    /// the last that fits
    Last(Filter),
    /// the n-th that fits, from 1
    Nth(Filter, u64),
}

/// What runs, and between which ports.
pub struct Case<'a> {
    /// the functions, in the order of the topology
    pub parts: &'a [Part<'a>],
    /// how they are connected
    pub topology: &'a Topology,
    /// names of the ports
    pub ports: &'a [String],
    /// where models are kept, if anywhere
    pub models: Option<&'a Path>,
}

/// Reads the next packet of a pass; false at the end.
pub fn next(
    pass: &mut dyn Pass,
    walk: &mut Walk<'_>,
    number: u64,
    packet: &mut Packet,
) -> Result<bool, ExplainError> {
    let Some((port, time, wire, frame)) = pass.next()? else {
        return Ok(false);
    };
    (packet.number, packet.port, packet.wire) = (number, port, wire);
    packet.time = walk.comes(time);
    packet.frame.clear();
    packet.frame.extend_from_slice(frame);
    Ok(true)
}

/// No packet yet.
pub fn none() -> Packet {
    Packet {
        number: 0,
        port: 0,
        time: 0,
        wire: 0,
        frame: Vec::new(),
    }
}

impl Case<'_> {
    fn name(&self) -> String {
        let names: Vec<&str> = self.parts.iter().map(|p| p.name.as_str()).collect();
        names.join(" ")
    }

    pub(crate) fn port(&self, port: u32) -> String {
        let name = self.ports.get(port as usize).cloned();
        name.unwrap_or_else(|| format!("port {port}"))
    }

    /// What became of a packet and its copies, in words.
    pub(crate) fn fate(&self, gone: &[Gone]) -> (String, Option<String>) {
        let mut texts = Vec::new();
        let mut reason = None;
        for one in gone {
            let (mut text, why) = match self.parts.get(one.element) {
                Some(part) => part.fate(one.fate),
                None => (String::new(), None),
            };
            // A port that it leaves by is the chain's.
            if let Fate::Forwarded(port) = one.fate {
                text = format!("forwarded to {}", self.port(port));
            }
            reason = reason.or(why);
            if !texts.contains(&text) {
                texts.push(text);
            }
        }
        (millrace_report::listed(&texts), reason)
    }

    /// The number of the packet that is asked for.
    fn number(&self, trace: &mut dyn Trace, which: &Which) -> Result<u64, ExplainError> {
        let (filter, wanted) = match which {
            Which::Number(n) => return Ok(*n),
            Which::First(filter) => (filter, 1),
            Which::Last(filter) => (filter, u64::MAX),
            Which::Nth(filter, n) => (filter, *n),
        };
        let mut walk = Walk::new(self.parts, self.topology);
        let mut pass = trace.open()?;
        let (mut number, mut fitting, mut last) = (0, 0, None);
        let mut packet = none();
        while next(pass.as_mut(), &mut walk, number, &mut packet)? {
            let gone = match filter.asks_fate() {
                true => walk.pass(&packet, &mut |_, _| Ok(()))?,
                false => Vec::new(),
            };
            let fate = filter.asks_fate().then(|| self.fate(&gone).0);
            let seen = Seen {
                frame: &packet.frame,
                port: &self.port(packet.port),
                fate: fate.as_deref(),
            };
            if filter.fits(&seen) {
                fitting += 1;
                last = Some(number);
                if fitting == wanted {
                    return Ok(number);
                }
            }
            number += 1;
        }
        match (which, last) {
            (Which::Last(_), Some(last)) => Ok(last),
            _ => Err(ExplainError::NoPacket {
                what: match fitting {
                    0 => format!("none of the {number} packets fits"),
                    n => format!(
                        "{n} of the {number} packets fit, and number {wanted} of them was asked for"
                    ),
                },
                help: "`millrace run` says what became of how many packets, and why".into(),
            }),
        }
    }
}

/// What happened at one element.
pub(crate) struct At<'a> {
    pub element: usize,
    pub packet: Packet,
    pub done: Execution<'a>,
    pub along: Along,
    pub fate: Fate,
    /// how emitted code differs
    pub differs: Option<String>,
}

impl<'a> At<'a> {
    /// An execution of a packet at an element, whose fate is not known yet.
    pub fn new(
        (element, part): (usize, &'a Part<'a>),
        packet: &Packet,
        done: Execution<'a>,
    ) -> Result<Self, ExplainError> {
        let flow = part.running().and_then(|at| part.checked.flows.get(at));
        let flow = flow.ok_or_else(|| ExplainError::Failed {
            element: part.name.clone(),
            what: "no program of it takes packets".into(),
        })?;
        Ok(Self {
            element,
            packet: packet.clone(),
            along: steps::follow(part, flow, packet, &done),
            done,
            fate: Fate::Aborted,
            differs: None,
        })
    }
}

/// Explains a packet; gives it as well.
///
/// # Errors
/// There is no such packet, the trace cannot be read, or the interpreter cannot say what the packet does.
pub fn explain(
    case: &Case<'_>,
    trace: &mut dyn Trace,
    which: &Which,
) -> Result<(Explanation, Packet), ExplainError> {
    let number = case.number(trace, which)?;
    let mut walk = Walk::new(case.parts, case.topology);
    let mut pass = trace.open()?;
    let mut at = 0;
    let mut packet = none();
    loop {
        if !next(pass.as_mut(), &mut walk, at, &mut packet)? {
            return Err(ExplainError::NoPacket {
                what: format!("there is no packet {number}: the trace has {at}"),
                help: "packets are numbered from 0, over all inputs by time".into(),
            });
        }
        if at == number {
            break;
        }
        walk.past(&packet, &mut |_, _| {})?;
        at += 1;
    }
    let mut hops: Vec<At<'_>> = Vec::new();
    let gone = walk.pass(&packet, &mut |hop, element| {
        let part = element.part;
        let failed = |what: String| ExplainError::Failed {
            element: part.name.clone(),
            what,
        };
        let Some((fate, bytes)) = hop.done else {
            let done = execute(element, hop.packet).map_err(|e| failed(e.0))?;
            hops.push(At::new((hop.element, part), hop.packet, done)?);
            return Ok(());
        };
        if let Some(at) = hops.last_mut() {
            at.fate = fate;
            at.differs = differs(at, fate, bytes, element);
        }
        Ok(())
    })?;
    let mut find = |watched: &BTreeSet<Watched>| {
        history::trace(
            case.parts,
            case.topology,
            &mut || Ok(trace.open()?),
            &packet,
            watched,
        )
    };
    let explanation = document(case, &packet, &hops, &gone, &mut find)?;
    Ok((explanation, packet))
}

/// What earlier packets did to entries.
type Find<'f> =
    dyn FnMut(&BTreeSet<Watched>) -> Result<BTreeMap<Watched, Found>, ExplainError> + 'f;

/// The explanation of a packet that met these elements.
pub(crate) fn document(
    case: &Case<'_>,
    packet: &Packet,
    hops: &[At<'_>],
    gone: &[Gone],
    find: &mut Find<'_>,
) -> Result<Explanation, ExplainError> {
    let told: Vec<Told> = (hops.iter())
        .filter_map(|at| {
            let part = case.parts.get(at.element)?;
            let words = Words::new(part.program, part.types);
            Some(steps::tell(part, &words, &at.along, &at.packet, &at.done))
        })
        .collect();
    let nearest = hops.last().filter(|at| nearest::is_drop(at.fate));
    let mut notes = Vec::new();
    let nearest = nearest.and_then(|at| passing(case, at, &mut notes));
    let mut watched = BTreeSet::new();
    for (at, told) in hops.iter().zip(&told) {
        watched.extend(
            told.keys
                .iter()
                .map(|(_, object, key)| watch(at, *object, key)),
        );
    }
    let found = find(&watched)?;
    let (verdict, reason) = case.fate(gone);
    let mut explanation = Explanation {
        name: case.name(),
        packet: Shown {
            number: packet.number,
            port: case.port(packet.port),
            time_ns: packet.time,
            bytes: hex(&packet.frame),
            headers: millrace_traffic::language::summarise(&packet.frame),
        },
        steps: Vec::new(),
        lines: Vec::new(),
        rewrites: Vec::new(),
        elements: Vec::new(),
        verdict,
        reason,
        nearest,
        agrees: hops.iter().all(|at| at.differs.is_none()),
        notes,
        worker: None,
    };
    for (at, mut told) in hops.iter().zip(told) {
        for (step, object, key) in &told.keys {
            let of = found.get(&watch(at, *object, key));
            let access = told
                .steps
                .get_mut(*step)
                .and_then(|s: &mut Step| s.access.as_mut());
            if let (Some(found), Some(access)) = (of, access) {
                access.by.clone_from(&found.changed);
                access.refreshed.clone_from(&found.refreshed);
            }
        }
        if let Some(part) = case.parts.get(at.element) {
            explanation.elements.push(Left {
                element: part.name.clone(),
                port: part
                    .ports
                    .get(at.packet.port as usize)
                    .cloned()
                    .unwrap_or_default(),
                verdict: part.fate(at.fate).0,
                line: told.last,
            });
        }
        explanation.steps.extend(told.steps);
        explanation.lines.extend(told.lines);
        explanation.rewrites.extend(told.rewrites);
        explanation.notes.extend(told.notes);
        explanation.notes.extend(at.differs.clone());
    }
    Ok(explanation)
}

/// The nearest path that passes, by a model that is made for this within a few seconds.
fn passing(case: &Case<'_>, at: &At<'_>, notes: &mut Vec<String>) -> Option<Nearest> {
    let part = case.parts.get(at.element)?;
    let limits = Limits {
        time: MODEL,
        ..Limits::default()
    };
    let model = kept::model(part.program, part.checked, &limits, case.models).0;
    let entry = model.entries.get(part.running()?)?;
    if let Outcome::Bounded { why } = &entry.outcome {
        notes.push(format!(
            "{}: a nearer path that passes may be missing: {why}",
            part.name
        ));
    }
    let words = Words::new(part.program, part.types);
    nearest::nearest(part, &words, entry, &at.packet, &at.done)
}

fn watch(at: &At<'_>, object: ObjectId, key: &[u8]) -> Watched {
    let stamp = at.done.stamps.iter().find(|s| s.0 == object && s.1 == *key);
    Watched {
        element: at.element,
        object,
        key: key.to_vec(),
        stamp: stamp.map(|s| s.2),
    }
}

/// How emitted code did otherwise than the interpreter.
fn differs(
    at: &At<'_>,
    fate: Fate,
    bytes: &[u8],
    element: &mut crate::Element<'_>,
) -> Option<String> {
    let part = element.part;
    if fate != at.done.fate {
        let (by_code, by_interpreter) = (part.fate(fate).0, part.fate(at.done.fate).0);
        return Some(format!(
            "{}: {by_code} by emitted code, {by_interpreter} by the interpreter; please report it",
            part.name
        ));
    }
    if bytes != at.done.bytes {
        return Some(format!(
            "{}: emitted code leaves other bytes than the interpreter; please report it",
            part.name
        ));
    }
    for (object, key) in at.done.log.before.keys() {
        let mine = at.done.machine.peek(*object, key);
        if let Ok(theirs) = element.instance.get(object.0, key, at.packet.time)
            && theirs != mine
        {
            let name = part.program.object(*object).map_or("", |o| o.name.as_str());
            return Some(format!(
                "{}: emitted code leaves `{name}[{}]` otherwise than the interpreter; please report it",
                part.name,
                part.exposed.words(object.0, key, &[]).0
            ));
        }
    }
    None
}
