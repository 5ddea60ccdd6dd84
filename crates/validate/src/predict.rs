//! The prediction of a path in numbers, and its comparison with an execution.

use millrace_dataplane::packet::Fate;
use millrace_dataplane::runner::hex;
use millrace_model::exec::{self as model, Presence, Target};
use millrace_model::expr::eval::Assignment;
use millrace_model::model::{Entry, Path, Verdict};
use millrace_object::contract::{Destination, Holds};
use millrace_object::program::{Dialect, ObjectId, Program};
use millrace_object::state::distributed;

use std::collections::BTreeSet;

use crate::chart::stored_key;
use crate::pair::{self, Happened, shown};
use crate::trial::{Lookup, Trial, takes_packets};
use crate::turns::has_turns;

/// State before the execution.
pub struct Was<'a> {
    /// the value under a key
    pub value: &'a Lookup<'a>,
    /// all values of an object that programs cannot write
    pub values: &'a dyn Fn(ObjectId) -> Vec<Vec<u8>>,
}

impl Was<'_> {
    fn at(&self, object: ObjectId, key: &[u8]) -> Option<Vec<u8>> {
        (self.value)(object, key)
    }

    fn all(&self, object: ObjectId) -> Vec<Vec<u8>> {
        (self.values)(object)
    }
}

/// `XDP_REDIRECT`
const REDIRECT: u32 = 4;
/// The longest frame.
const MOST: i64 = 0xffff;

/// One access.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Access {
    /// the object
    pub object: ObjectId,
    /// the helper's name, `load`, `store` or `atomic`
    pub operation: &'static str,
    /// the key, a number in 8 bytes
    pub key: Vec<u8>,
    /// what is written
    pub value: Vec<u8>,
    /// first byte of the value that is touched
    pub offset: Option<u32>,
    /// what came of it
    pub outcome: Option<&'static str>,
}

/// Prediction of a path.
#[derive(Clone, Debug)]
pub struct Prediction {
    /// the fates of which its is one; none for an entry that takes no packet, and where another program decides
    pub fates: Vec<Fate>,
    /// the element of a program array whose program goes on
    pub goes_on: Option<(ObjectId, u32)>,
    /// the frame afterwards; none for an entry that takes no packet
    pub packet: Option<Vec<u8>>,
    /// the path is all of the execution: no other program goes on with the packet
    pub whole: bool,
    /// it goes through loops that are taken for any number of turns: accesses are no sequence
    pub open: bool,
    /// objects that it may write to anywhere: those of a path that is open, and tables whose prefixes it changes
    pub written: BTreeSet<ObjectId>,
    /// accesses to state in order
    pub accesses: Vec<Access>,
    /// entries that it touches, as they are afterwards; none: absent
    pub entries: Vec<(ObjectId, Vec<u8>, Option<Vec<u8>>)>,
}

/// A disagreement, in words.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Disagreement {
    /// `verdict`, `rewrite`, `access` or `state`
    pub what: &'static str,
    /// what the path says
    pub predicted: String,
    /// what happened
    pub happened: String,
}

/// Prediction of a path under an assignment, from the state before.
#[must_use]
pub fn predict(
    program: &Program,
    entry: &Entry,
    path: &Path,
    trial: &Trial,
    under: &Assignment,
    was: &Was<'_>,
) -> Prediction {
    let arena = &entry.arena;
    let value = |e| under.value(arena, e);
    let bytes = |all: &[_]| all.iter().map(|e| value(*e) as u8).collect::<Vec<u8>>();
    let whole = !matches!(path.verdict, Verdict::GoesOn(..));
    let fates = match path.verdict {
        Verdict::Number(e) if takes_packets(entry.role) => {
            let verdict = value(e) as u32;
            let xdp = |to| vec![pair::xdp(verdict, trial.port, to)];
            match (program.dialect, &path.target) {
                (Dialect::Handlers, _) => vec![Fate::of_verdict(verdict)],
                (Dialect::Xdp, Some(Target::Interface(to))) => {
                    xdp((value(*to) as u32).checked_sub(1))
                }
                (Dialect::Xdp, Some(Target::Entry(object, key))) if verdict == REDIRECT => {
                    let led = was.at(*object, &bytes(key));
                    vec![led_by(program, *object, led.as_deref())]
                }
                (Dialect::Xdp, Some(Target::All(object))) if verdict == REDIRECT => {
                    broadcast(&was.all(*object), trial)
                }
                (Dialect::Xdp, _) => xdp(None),
            }
        }
        _ => Vec::new(),
    };
    let goes_on = match path.verdict {
        Verdict::GoesOn(array, index) => Some((array, value(index) as u32)),
        _ => None,
    };
    // Nothing is said of bytes that a helper has changed.
    let said = whole && path.borders.changed.is_none();
    let packet = (said && takes_packets(entry.role)).then(|| {
        let (start, end) = (
            value(path.borders.start) as i64,
            value(path.borders.end) as i64,
        );
        let end = end.clamp(start, start.saturating_add(MOST));
        // What a packet grows by is zero.
        let byte = |at: i64| {
            usize::try_from(at)
                .ok()
                .and_then(|at| trial.packet.get(at).copied())
        };
        let mut packet: Vec<u8> = (start..end).map(|at| byte(at).unwrap_or(0)).collect();
        for w in &path.rewrites {
            let at = (w.base.map_or(0, value) as i64)
                .wrapping_add(w.at)
                .wrapping_sub(start);
            if let Some(byte) = usize::try_from(at).ok().and_then(|at| packet.get_mut(at)) {
                *byte = value(w.byte) as u8;
            }
        }
        packet
    });
    let accesses = path.accesses.iter().map(|a| {
        // Of an array the element that is touched.
        let element = a
            .chosen
            .map(|(offset, bytes)| (value(offset) as u32, bytes));
        let written = match (element, a.offset) {
            (Some((at, bytes)), Some(first)) => {
                let elements = a.value.get(at.wrapping_sub(first) as usize..);
                elements.map_or(&[][..], |e| e.get(..bytes as usize).unwrap_or(e))
            }
            _ => &a.value,
        };
        Access {
            object: a.object,
            operation: a.operation,
            key: bytes(&a.key),
            value: bytes(written),
            offset: element.map(|e| e.0).or(a.offset),
            outcome: a.outcome,
        }
    });
    let mut entries = Vec::new();
    let mut written: BTreeSet<ObjectId> = prefixes(path).collect();
    for place in &path.places {
        let no_key = || place.key.is_empty() && prefixes(path).any(|o| o == place.object);
        if place.lapsed.is_some() || !whole || no_key() {
            continue;
        }
        let Some(key) = stored_key(program, arena, place, under) else {
            continue;
        };
        let object = program.objects.get(place.object.0);
        // Whether another entry that the path added evicted it is not said.
        if place.presence == Presence::Open && place.doubts > 0 {
            written.insert(place.object);
            continue;
        }
        let after = match place.presence {
            // Nobody but the host writes these, and nothing there may be zeros.
            _ if object.is_some_and(|o| o.leads_on()) => was.at(place.object, &key),
            Presence::Absent => None,
            Presence::Open => was.at(place.object, &key),
            Presence::There => {
                let length = object.map_or(0, |o| o.value_bytes as usize);
                let mut after = if place.fresh {
                    vec![0; length]
                } else {
                    was.at(place.object, &key)
                        .unwrap_or_else(|| vec![0; length])
                };
                for (at, e) in &place.bytes {
                    if let Some(byte) = after.get_mut(*at as usize) {
                        *byte = value(*e) as u8;
                    }
                }
                Some(after)
            }
        };
        entries.push((place.object, key, after));
    }
    Prediction {
        fates,
        goes_on,
        packet,
        whole,
        open: has_turns(path),
        written,
        accesses: accesses.collect(),
        entries,
    }
}

/// The tables whose prefixes a path changes. Which keys find something else afterwards is not followed (the model's
/// exec/calls/prefix.rs), so that its accesses alone are held against the execution.
pub(crate) fn prefixes(path: &Path) -> impl Iterator<Item = ObjectId> {
    let changes = |a: &&model::Access| matches!(a.operation, "lpm_put" | "lpm_delete");
    path.accesses.iter().filter(changes).map(|a| a.object)
}

fn name(program: &Program, object: ObjectId) -> &str {
    let object = program.objects.get(object.0);
    object.map_or("?", |o| o.name.as_str())
}

/// The fate of a packet that an entry of this value leads on.
fn led_by(program: &Program, object: ObjectId, value: Option<&[u8]>) -> Fate {
    let first = value.and_then(|v| v.first_chunk());
    let number = first.map_or(0, |b| u32::from_le_bytes(*b));
    let holds = program.objects.get(object.0).map(|o| o.kind.holds);
    match (holds, number) {
        (Some(Holds::Targets(Destination::Cpu)), 1..) => Fate::Passed,
        (Some(Holds::Targets(Destination::Socket)), 1..) => Fate::Consumed,
        (_, n) => Fate::Forwarded(n.checked_sub(1).unwrap_or(u32::MAX)),
    }
}

/// The fates that a broadcast to these entries' interfaces can have: with the ingress port, or without it.
fn broadcast(values: &[Vec<u8>], trial: &Trial) -> Vec<Fate> {
    let port = |v: &Vec<u8>| u32::from_le_bytes(*v.first_chunk()?).checked_sub(1);
    let mut named: Vec<u32> = values.iter().filter_map(port).collect();
    named.retain(|p| *p < trial.ports);
    named.sort_unstable();
    named.dedup();
    let fate = |to: &[u32]| match to {
        [] => Fate::Dropped(0),
        [only] => Fate::Forwarded(*only),
        all if (0..trial.ports)
            .filter(|p| *p != trial.port)
            .eq(all.iter().copied()) =>
        {
            Fate::Flooded
        }
        // No fate says that: the host aborts it.
        _ => Fate::Forwarded(u32::MAX),
    };
    let whole = fate(&named);
    named.retain(|p| *p != trial.port);
    vec![whole, fate(&named)]
}

/// Where an object that evicts has other than the entries that it had, those added and not those deleted: one
/// goes for one that is added when it is full, and none else.
fn evictions(program: &Program, predicted: &Prediction, happened: &Happened) -> Vec<Disagreement> {
    let counts = happened.counts.iter();
    let counts = counts.filter(|_| predicted.whole && !predicted.open);
    let differing = counts.filter_map(|(object, before, after)| {
        let capacity = program.objects.get(object.0).map_or(0, |o| o.capacity);
        let mut all = *before;
        for a in predicted.accesses.iter().filter(|a| a.object == *object) {
            match (a.operation, a.outcome) {
                (_, Some("added")) => all = capacity.min(all + 1),
                ("map_delete_elem", Some("there")) => all = all.saturating_sub(1),
                _ => {}
            }
        }
        (all != *after).then(|| Disagreement {
            what: "eviction",
            predicted: format!("{} has {all} entries", name(program, *object)),
            happened: format!("{after}, and {before} before"),
        })
    });
    differing.collect()
}

/// Result of an access, in the model's words.
pub(crate) fn outcome(helper: &str, key: &[u8], there: bool, result: u64) -> Option<&'static str> {
    let found = |yes, no| Some(if result != 0 { yes } else { no });
    match helper {
        "map_put" if result == 0 => Some("full"),
        "map_update_elem" if result != 0 => Some("full"),
        "map_put" | "map_update_elem" if there => Some("overwritten"),
        "map_put" | "map_update_elem" => Some("added"),
        "lpm_put" => found("stored", "full"),
        "allocator_lease" if result == u64::MAX => Some("none free"),
        "allocator_lease" => Some("leased"),
        "map_delete_elem" => Some(if there { "there" } else { "absent" }),
        "ringbuf_reserve" => found("reserved", "full"),
        "ringbuf_output" | "perf_event_output" => found("full", "appended"),
        "redirect_map" if key.is_empty() => Some("all"),
        "redirect_map" => Some(if there { "there" } else { "absent" }),
        "lpm_delete" | "sketch_count" | "sketch_add" | "classify" | "load" | "store" | "atomic"
        | "ringbuf_submit" | "ringbuf_discard" | "distributed_add" | "distributed_max"
        | "distributed_or" | "distributed_read" => None,
        _ => found("there", "absent"),
    }
}

/// Differences from the prediction. `after` gives the value under a key now.
#[must_use]
pub fn compare(
    program: &Program,
    predicted: &Prediction,
    happened: &Happened,
    after: &Lookup<'_>,
) -> Vec<Disagreement> {
    let mut out = Vec::new();
    if !predicted.fates.is_empty() && !predicted.fates.contains(&happened.fate) {
        let fates: Vec<String> = predicted.fates.iter().map(|f| format!("{f:?}")).collect();
        out.push(Disagreement {
            what: "verdict",
            predicted: fates.join(" or "),
            happened: format!("{:?}", happened.fate),
        });
    }
    let went_on = happened.log.went_on.first();
    if predicted.goes_on.as_ref() != went_on {
        let words = |to: Option<&(ObjectId, u32)>| {
            to.map_or_else(
                || "no other program goes on".to_owned(),
                |(array, index)| format!("that of {}[{index}] goes on", name(program, *array)),
            )
        };
        out.push(Disagreement {
            what: "tail call",
            predicted: words(predicted.goes_on.as_ref()),
            happened: words(went_on),
        });
    }
    if let Some(packet) = &predicted.packet
        && *packet != happened.packet
    {
        let differs = (0..).zip(packet.iter().zip(&happened.packet));
        let at = differs.into_iter().find(|(_, (p, h))| p != h).map(|d| d.0);
        let around = |packet: &[u8]| match at {
            Some(at) => format!("byte {at} is {:02x}", packet.get(at).copied().unwrap_or(0)),
            None => format!("{} bytes", packet.len()),
        };
        out.push(Disagreement {
            what: "rewrite",
            predicted: around(packet),
            happened: around(&happened.packet),
        });
    }
    let name = |o: ObjectId| name(program, o);
    // Of an open path they are held against its pattern (turns.rs).
    let touches = happened.log.touches.iter();
    let happened_accesses: Vec<Access> = touches
        .take(if predicted.open { 0 } else { usize::MAX })
        .map(|t| Access {
            object: t.object,
            operation: t.operation,
            key: t.key.clone(),
            value: t.value.clone(),
            offset: t.offset,
            outcome: outcome(t.operation, &t.key, t.there, t.result),
        })
        .collect();
    let longest = match predicted.whole {
        true => predicted.accesses.len().max(happened_accesses.len()),
        false => predicted.accesses.len(),
    };
    let differing = (0..longest).find(|i| {
        match (predicted.accesses.get(*i), happened_accesses.get(*i)) {
            (Some(p), Some(h)) => {
                // An array says of an index beyond the last that it is that.
                let refused = h.outcome == Some("full")
                    && p.outcome
                        .is_some_and(|o| o == "beyond the last" || o.starts_with("refused"));
                let mut alike = Access {
                    outcome: if refused { p.outcome } else { h.outcome },
                    ..h.clone()
                };
                // The record goes on with as many bytes of the packet as the flags say.
                if p.operation == "perf_event_output" {
                    alike.value.truncate(p.value.len());
                }
                *p != alike
            }
            _ => true,
        }
    });
    if let Some(i) = differing {
        let words = |a: Option<&Access>| {
            a.map_or_else(
                || format!("{i} accesses"),
                |a| {
                    let mut text = format!("access {}: {} {}", i + 1, a.operation, name(a.object));
                    if !a.key.is_empty() {
                        text += &format!("[{}]", hex(&a.key));
                    }
                    if let Some(offset) = a.offset {
                        text += &format!(" byte {offset}");
                    }
                    if !a.value.is_empty() {
                        text += &format!(" <- {}", hex(&a.value));
                    }
                    if let Some(outcome) = a.outcome {
                        text += &format!(": {outcome}");
                    }
                    text
                },
            )
        };
        out.push(Disagreement {
            what: "access",
            predicted: words(predicted.accesses.get(i)),
            happened: words(happened_accesses.get(i)),
        });
    }
    for (object, key, value) in &predicted.entries {
        let now = after(*object, key);
        if now != *value {
            out.push(Disagreement {
                what: "state",
                predicted: format!(
                    "{}[{}] = {}",
                    name(*object),
                    hex(key),
                    shown(value.as_deref())
                ),
                happened: shown(now.as_deref()),
            });
        }
    }
    out.extend(evictions(program, predicted, happened));
    // What changed without being foretold. What a sketch says is its own affair, and how much is added in no access.
    let sketch = |o: ObjectId| {
        let object = program.objects.get(o.0);
        object.is_some_and(|o| o.kind.estimates() || *o.kind == distributed::KIND)
    };
    for ((object, key), before) in &happened.log.before {
        if sketch(*object) || !predicted.whole || predicted.written.contains(object) {
            continue;
        }
        let foretold = predicted
            .entries
            .iter()
            .any(|(o, k, _)| o == object && k == key);
        let now = after(*object, key);
        if !foretold && now != *before {
            out.push(Disagreement {
                what: "state",
                predicted: format!("{}[{}] is not touched", name(*object), hex(key)),
                happened: shown(now.as_deref()),
            });
        }
    }
    out
}
