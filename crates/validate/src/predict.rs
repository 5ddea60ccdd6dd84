//! What a path says that happens, in numbers; and whether it did.

use millrace_dataplane::packet::Fate;
use millrace_model::exec::Presence;
use millrace_model::expr::eval::Assignment;
use millrace_model::model::{Entry, Path, Verdict};
use millrace_object::program::{Dialect, ObjectId, Program};

use crate::chart::stored_key;
use crate::pair::{self, Happened, hex, shown};
use crate::trial::{Trial, takes_packets};

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
    /// none for an entry that takes no packet
    pub fate: Option<Fate>,
    /// the frame afterwards
    pub packet: Vec<u8>,
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
    was: &dyn Fn(ObjectId, &[u8]) -> Option<Vec<u8>>,
) -> Prediction {
    let arena = &entry.arena;
    let value = |e| under.value(arena, e);
    let bytes = |all: &[_]| all.iter().map(|e| value(*e) as u8).collect::<Vec<u8>>();
    let fate = match path.verdict {
        Verdict::Number(e) if takes_packets(entry.role) => {
            let verdict = value(e) as u32;
            Some(if program.dialect == Dialect::Handlers {
                pair::handlers(verdict)
            } else {
                let to = path.target.and_then(|t| (value(t) as u32).checked_sub(1));
                pair::xdp(verdict, trial.port, to)
            })
        }
        _ => None,
    };
    let mut packet = trial.packet.clone();
    for w in &path.rewrites {
        let at = w.base.map_or(0, value).wrapping_add(w.at as u64);
        if let Some(byte) = usize::try_from(at).ok().and_then(|at| packet.get_mut(at)) {
            *byte = value(w.byte) as u8;
        }
    }
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
        "sketch_count" | "sketch_add" | "load" | "store" | "atomic" => None,
        _ => found("there", "absent"),
    }
}

/// What did not happen as predicted. `after` is what is under a key now.
#[must_use]
pub fn compare(
    program: &Program,
    predicted: &Prediction,
    happened: &Happened,
    after: &dyn Fn(ObjectId, &[u8]) -> Option<Vec<u8>>,
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
    if predicted.fate.is_some() && predicted.packet != happened.packet {
        let differs = (0..).zip(predicted.packet.iter().zip(&happened.packet));
        let at = differs.into_iter().find(|(_, (p, h))| p != h).map(|d| d.0);
        let around = |packet: &[u8]| match at {
            Some(at) => format!("byte {at} is {:02x}", packet.get(at).copied().unwrap_or(0)),
            None => format!("{} bytes", packet.len()),
        };
        out.push(Disagreement {
            what: "rewrite",
            predicted: around(&predicted.packet),
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
    let longest = predicted.accesses.len().max(happened_accesses.len());
    let differing = (0..longest).find(|i| {
        match (predicted.accesses.get(*i), happened_accesses.get(*i)) {
            (Some(p), Some(h)) => {
                // An array says of an index beyond the last that it is that.
                let beyond = p.outcome == Some("beyond the last") && h.outcome == Some("full");
                let alike = Access {
                    outcome: if beyond { p.outcome } else { h.outcome },
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
        if sketch(*object) {
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
