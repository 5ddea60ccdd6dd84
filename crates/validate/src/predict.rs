//! What a path says that happens, in numbers; and whether it did.

use millrace_dataplane::packet::Fate;
use millrace_model::exec::{Presence, Target};
use millrace_model::expr::eval::Assignment;
use millrace_model::model::{Entry, Path, Verdict};
use millrace_object::program::{Dialect, ObjectId, Program};

use crate::chart::stored_key;
use crate::pair::{self, Happened, hex, shown};
use crate::trial::{Lookup, Trial, takes_packets};

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

/// What a path says.
#[derive(Clone, Debug)]
pub struct Prediction {
    /// none for an entry that takes no packet, and where another object decides
    pub fate: Option<Fate>,
    /// the frame afterwards; none for an entry that takes no packet
    pub packet: Option<Vec<u8>>,
    /// the path is all of the execution: no other program goes on with the packet
    pub whole: bool,
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

/// What a path says under an assignment. `was` is what was under a key before.
#[must_use]
pub fn predict(
    program: &Program,
    entry: &Entry,
    path: &Path,
    trial: &Trial,
    under: &Assignment,
    was: &Lookup<'_>,
) -> Prediction {
    let arena = &entry.arena;
    let value = |e| under.value(arena, e);
    let bytes = |all: &[_]| all.iter().map(|e| value(*e) as u8).collect::<Vec<u8>>();
    let whole = !matches!(path.verdict, Verdict::GoesOn(..));
    let fate = match path.verdict {
        Verdict::Number(e) if takes_packets(entry.role) => {
            let verdict = value(e) as u32;
            match (program.dialect, &path.target) {
                (Dialect::Handlers, _) => Some(pair::handlers(verdict)),
                (Dialect::Xdp, Some(Target::Interface(to))) => {
                    let to = (value(*to) as u32).checked_sub(1);
                    Some(pair::xdp(verdict, trial.port, to))
                }
                (Dialect::Xdp, None) => Some(pair::xdp(verdict, trial.port, None)),
                // Where an entry leads is for its map to say.
                (Dialect::Xdp, Some(Target::Entry(..) | Target::All(_))) if verdict == 4 => None,
                (Dialect::Xdp, Some(_)) => Some(pair::xdp(verdict, trial.port, None)),
            }
        }
        _ => None,
    };
    let packet = (whole && takes_packets(entry.role)).then(|| {
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
    let accesses = path.accesses.iter().map(|a| Access {
        object: a.object,
        operation: a.operation,
        key: bytes(&a.key),
        value: bytes(&a.value),
        offset: a.offset,
        outcome: a.outcome,
    });
    let mut entries = Vec::new();
    for place in &path.places {
        if place.lapsed.is_some() || !whole {
            continue;
        }
        let Some(key) = stored_key(program, arena, place, under) else {
            continue;
        };
        let length = program
            .objects
            .get(place.object.0)
            .map_or(0, |o| o.value_bytes as usize);
        let after = match place.presence {
            Presence::Absent => None,
            Presence::Open => was(place.object, &key),
            Presence::There => {
                let mut after = if place.fresh {
                    vec![0; length]
                } else {
                    was(place.object, &key).unwrap_or_else(|| vec![0; length])
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
        fate,
        packet,
        whole,
        accesses: accesses.collect(),
        entries,
    }
}

/// What came of an access, in the model's words.
fn outcome(helper: &str, there: bool, result: u64) -> Option<&'static str> {
    let found = |yes, no| Some(if result != 0 { yes } else { no });
    match helper {
        "map_put" if result == 0 => Some("full"),
        "map_update_elem" if result != 0 => Some("full"),
        "map_put" | "map_update_elem" if there => Some("overwritten"),
        "map_put" | "map_update_elem" => Some("added"),
        "allocator_lease" if result == u64::MAX => Some("none free"),
        "allocator_lease" => Some("leased"),
        "map_delete_elem" => Some(if there { "there" } else { "absent" }),
        "ringbuf_reserve" => found("reserved", "full"),
        "ringbuf_output" | "perf_event_output" => found("full", "appended"),
        "sketch_count" | "sketch_add" | "load" | "store" | "atomic" | "ringbuf_submit"
        | "ringbuf_discard" => None,
        _ => found("there", "absent"),
    }
}

/// What did not happen as predicted. `after` is what is under a key now.
#[must_use]
pub fn compare(
    program: &Program,
    predicted: &Prediction,
    happened: &Happened,
    after: &Lookup<'_>,
) -> Vec<Disagreement> {
    let mut out = Vec::new();
    if let Some(fate) = predicted.fate
        && fate != happened.fate
    {
        out.push(Disagreement {
            what: "verdict",
            predicted: format!("{fate:?}"),
            happened: format!("{:?}", happened.fate),
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
    let name = |o: ObjectId| program.objects.get(o.0).map_or("?", |o| o.name.as_str());
    let happened_accesses: Vec<Access> = (happened.log.touches.iter())
        .map(|t| Access {
            object: t.object,
            operation: t.operation,
            key: t.key.clone(),
            value: t.value.clone(),
            offset: t.offset,
            outcome: outcome(t.operation, t.there, t.result),
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
                let alike = Access {
                    outcome: if refused { p.outcome } else { h.outcome },
                    ..h.clone()
                };
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
    // What changed without being foretold. What a sketch says is its own affair.
    let sketch = |o: ObjectId| {
        program
            .objects
            .get(o.0)
            .is_some_and(|o| o.kind.name == "sketch")
    };
    for ((object, key), before) in &happened.log.before {
        if sketch(*object) || !predicted.whole {
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
