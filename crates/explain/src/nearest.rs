//! The nearest path that would have passed: of the model's, the one with the fewest conditions that were not so.

use millrace_dataplane::packet::Fate;
use millrace_model::expr::eval::Assignment;
use millrace_model::expr::ids::IdMap;
use millrace_model::expr::walk::cone;
use millrace_model::expr::{ExprId, Node, Origin, SymId};
use millrace_model::model::{Entry, Path, Verdict};
use millrace_object::program::{Dialect, ObjectId};
use millrace_report::along::Words;
use millrace_verify::Packet;

use crate::document::{Difference, Nearest, Value};
use crate::element::Part;
use crate::execution::Execution;

/// Most conditions that are told.
const MOST: usize = 8;

/// The nearest path of an entry on which a packet would have passed, in the state before it. None if no path of
/// the model passes.
#[must_use]
pub fn nearest(
    part: &Part<'_>,
    words: &Words<'_>,
    entry: &Entry,
    packet: &Packet,
    done: &Execution<'_>,
) -> Option<Nearest> {
    let mut best: Option<(usize, usize, &Path, Assignment, Vec<usize>)> = None;
    for path in entry
        .paths
        .iter()
        .filter(|p| p.segment == 0 && passes(part, entry, p))
    {
        let under = bound(part, entry, path, packet, done);
        let wrong: Vec<usize> = (path.guard.iter().enumerate())
            .filter(|(_, e)| under.value(&entry.arena, **e) != 1)
            .map(|(i, _)| i)
            .collect();
        // Of two, the one that goes with the packet for longer.
        let first = wrong.first().copied().unwrap_or(path.guard.len());
        let better = best
            .as_ref()
            .is_none_or(|(n, at, ..)| (wrong.len(), usize::MAX - first) < (*n, usize::MAX - at));
        if better {
            best = Some((wrong.len(), first, path, under, wrong));
        }
    }
    let (_, _, path, under, wrong) = best?;
    if wrong.is_empty() {
        return None;
    }
    let differs = wrong.iter().filter_map(|i| {
        let e = *path.guard.get(*i)?;
        let inputs = words.inputs(entry, path, *i, &[e], &under);
        Some(Difference {
            condition: words.condition(entry, path, *i, e)?,
            values: inputs
                .into_iter()
                .map(|i| Value {
                    name: i.name,
                    value: i.value,
                })
                .collect(),
        })
    });
    let differs: Vec<Difference> = differs.take(MOST).collect();
    (!differs.is_empty()).then(|| Nearest {
        verdict: words.verdict(entry, path),
        differs,
        incomplete: !entry.outcome.covers(),
    })
}

/// Whether a path lets its packet go on.
fn passes(part: &Part<'_>, entry: &Entry, path: &Path) -> bool {
    let Verdict::Number(e) = path.verdict else {
        return false;
    };
    match (entry.arena.constant(e), part.program.dialect) {
        (Some(n), Dialect::Handlers) => matches!(n >> 24, 1 | 2 | 4),
        (Some(n), Dialect::Xdp) => matches!(n, 2..=4),
        // A port that is computed.
        (None, _) => true,
    }
}

/// Whether a fate is one that somebody may ask about.
#[must_use]
pub fn is_drop(fate: Fate) -> bool {
    matches!(fate, Fate::Dropped(_) | Fate::Aborted)
}

/// The symbols of a path, looked up in the packet and the state before it.
fn bound(
    part: &Part<'_>,
    entry: &Entry,
    path: &Path,
    packet: &Packet,
    done: &Execution<'_>,
) -> Assignment {
    let arena = &entry.arena;
    let mut symbols: IdMap<SymId, u64> = IdMap::default();
    let bytes = || (0..).zip(packet.frame.iter().copied()).collect();
    let keys = path.places.iter().flat_map(|p| p.key.iter().copied());
    let roots: Vec<ExprId> = path.guard.iter().copied().chain(keys).collect();
    let xdp = part.program.dialect == Dialect::Xdp;
    let mut of_state = Vec::new();
    for e in cone(arena, &roots, |_| false) {
        let Node::Sym(s) = arena.node(e) else {
            continue;
        };
        let symbol = arena.symbol(*s);
        let value = match (symbol.origin, symbol.name.as_str()) {
            (Origin::Length, _) => packet.frame.len() as u64,
            (Origin::Port, "port") => u64::from(packet.port) + u64::from(xdp),
            (Origin::Port, "ports") => part.ports.len() as u64,
            (Origin::Port, "headroom" | "tailroom") => 256,
            (Origin::Time, _) => packet.time,
            (Origin::Param, name) => {
                let param = part.program.params.iter().find(|p| p.name == name);
                param.map_or(0, |p| p.declared(part.program))
            }
            (Origin::State(_), _) => {
                of_state.push(*s);
                continue;
            }
            _ => 0,
        };
        symbols.insert(*s, value);
    }
    // A key may depend on what earlier places held.
    for place in &path.places {
        let under = Assignment::new(symbols.clone(), bytes());
        let key: Vec<u8> = place
            .key
            .iter()
            .map(|e| under.value(arena, *e) as u8)
            .collect();
        let stored = crate::steps::stored(part.program, place.object, &key);
        let object = part.program.objects.get(place.object.0);
        let value =
            stored.and_then(
                |key| match done.log.before.get(&(place.object, key.clone())) {
                    Some(before) => before.clone(),
                    None => done.machine.peek(place.object, &key),
                },
            );
        let value = value.filter(|v| object.is_none_or(|o| o.holds(v)));
        for s in &of_state {
            let symbol = arena.symbol(*s);
            let Some(rest) = symbol.name.strip_prefix(place.stem.as_str()) else {
                continue;
            };
            if symbol.origin != Origin::State(place.object.0) || !rest.starts_with(['.', '[']) {
                continue;
            }
            let number = if rest.starts_with(".present") {
                u64::from(value.is_some())
            } else if rest.starts_with(".full") {
                u64::from(done.machine.is_full(place.object))
            } else {
                let range = rest.trim_matches(['[', ']']).split_once("..");
                let range = range
                    .and_then(|(a, b)| Some((a.parse::<usize>().ok()?, b.parse::<usize>().ok()?)));
                let part = range
                    .zip(value.as_ref())
                    .and_then(|((a, b), v)| v.get(a.min(v.len())..b.min(v.len())));
                part.map_or(0, |v| v.iter().rev().fold(0, |n, b| n << 8 | u64::from(*b)))
            };
            symbols.insert(*s, number);
        }
    }
    for s in of_state {
        let symbol = arena.symbol(s);
        if let (Origin::State(object), true) = (symbol.origin, symbol.name.contains(".full"))
            && !symbols.contains_key(&s)
        {
            symbols.insert(s, u64::from(done.machine.is_full(ObjectId(object))));
        }
    }
    Assignment::new(symbols, bytes())
}
