//! R5, interchangeable constraints: a packet that finds an entry goes on only if fields of its own equal what the
//! packet that made the entry stored there, and a mismatch behaves as a miss. Then it need only meet the
//! packets with which those fields agree: on any other core it finds nothing, or something that does not
//! match, and ends the same way.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet, HashSet};

use millrace_model::Model;
use millrace_model::expr::walk::cone;
use millrace_model::expr::{ExprId, Node, Origin, Rel};
use millrace_object::program::Program;

use super::Said;
use crate::constraints::{Cases, Meeting, equal};
use crate::key::{Bit, Key};
use crate::packets::{Packets, conjuncts};
use crate::plan::Rule;
use crate::touch::{At, Found, Seen, Source, Touch, Touches, distinct, value_of};
use crate::words;

/// The relation that replaces equality of keys.
pub(crate) struct Exchanged {
    pub meetings: Vec<Meeting>,
    /// the fields that are compared, in words
    pub fields: String,
    /// where
    pub line: Option<String>,
}

/// An object whose packets meet by what they are held against.
pub(crate) fn judge(name: &str, found: &Exchanged) -> Said {
    let reason = format!(
        "a packet that finds an entry of {name} goes on only if its {} equal what was stored there, and a mismatch behaves \
         as a miss: packets meet by those fields, not by the leased number",
        found.fields
    );
    Said::new(Rule::R5, reason, found.line.clone())
}

/// A bit of a value and what a packet's must equal it.
type Match = (u32, Bit);

/// Values stored by writers, by place and by packets.
type Stored = BTreeMap<At, BTreeSet<(Packets, Key)>>;

/// For an object whose numbers are leased, reached by numbers that packets carry.
pub(crate) fn exchanged(
    model: &mut Model,
    program: &Program,
    object: usize,
    touches: &Touches,
    cases: &Cases,
) -> Option<Exchanged> {
    let by_fields = |f: &&Found| f.source == Source::Fields;
    let direct = touches.all.iter().filter(|t| t.object == object);
    let direct: Vec<&Touch> = direct
        .filter(|t| t.by.iter().any(|f| by_fields(&f)))
        .collect();
    let founds = distinct(direct.iter().copied()).map(|(_, f)| f);
    let ports: BTreeSet<usize> = founds.filter(by_fields).map(|f| f.packets.port).collect();
    let (mut meetings, mut fields, mut line) = (Vec::new(), BTreeSet::new(), None);
    let mut stored = Stored::new();
    let mut held = HashSet::new();
    for port in ports {
        let here = |t: &&&Touch| t.by.iter().any(|f| by_fields(&f) && f.packets.port == port);
        let mut paths: BTreeMap<(usize, usize), Vec<&Touch>> = BTreeMap::new();
        for t in direct.iter().filter(here) {
            let path = paths.entry((t.at.entry, t.at.path));
            path.or_default().push(t);
        }
        let (mut misses, mut found) = (BTreeSet::new(), Vec::new());
        for ((entry, path), mine) in &paths {
            let (entry, path) = (*entry, *path);
            let mut outcomes = mine.iter().filter_map(|t| t.at.access_of(model)?.outcome);
            let e = model.entries.get(entry)?;
            let p = e.paths.get(path)?;
            match outcomes.next() {
                Some("absent") => drop(misses.insert(p.inert(&e.arena)?)),
                Some("there") => found.push((entry, path, p.inert(&e.arena))),
                _ => return None,
            }
        }
        // One end for all that miss.
        let miss = match misses.into_iter().collect::<Vec<_>>().as_slice() {
            [one] => *one,
            _ => return None,
        };
        for (entry, path, _) in found.into_iter().filter(|f| f.2 != Some(miss)) {
            let at = At {
                entry,
                path,
                access: 0,
            };
            let compared = equalities(model, at, object)?;
            for seen in touches.seen(at) {
                let as_seen = |f: &&Found| {
                    by_fields(f)
                        && f.packets.port == port
                        && (f.packets, f.way) == (seen.packets, seen.way)
                };
                let mut mine = paths.get(&(entry, path)).into_iter().flatten();
                let asked = mine.find(|t| t.by.iter().any(|f| as_seen(&f)));
                let Some(asked) = asked else { continue };
                let number = asked.at.access_of(model)?.entry;
                let matches = matches(model, program, seen, (entry, &compared), (object, number))?;
                for (_, b) in &matches {
                    if let Bit::Field(f, _) = b {
                        fields.insert(*f);
                    }
                }
                if !matches.iter().any(|m| matches!(m.1, Bit::Field(..))) {
                    return None;
                }
                line = line.or_else(|| reads(model, at, object));
                // Many paths hold the same packets against the same bytes.
                if held.insert((seen.packets, matches.clone())) {
                    let own = (object, &mut stored);
                    let more = with_writers(model, touches, own, (seen, &matches), cases)?;
                    meetings.extend(more);
                }
            }
        }
    }
    let fields: Vec<String> = fields.into_iter().map(words::field).collect();
    (!meetings.is_empty()).then(|| Exchanged {
        meetings: cases.unique(meetings),
        fields: words::listed(&fields),
        line,
    })
}

/// Where the path reads what it compares.
fn reads(model: &Model, at: At, object: usize) -> Option<String> {
    let path = at.path_of(model)?;
    let mut loads = path
        .accesses
        .iter()
        .filter(|a| a.object.0 == object && a.operation == "load");
    loads.next()?.line.as_ref().map(words::place)
}

/// The conditions of a path's guard that something equals what is read from the object.
fn equalities(model: &Model, at: At, object: usize) -> Option<Vec<ExprId>> {
    let entry = model.entries.get(at.entry)?;
    let arena = &entry.arena;
    let mut guard = conjuncts(arena, &entry.paths.get(at.path)?.guard);
    let of = |id: ExprId| matches!(arena.node(id), Node::Sym(s) if arena.symbol(*s).origin == Origin::State(object));
    let state = |e: &ExprId| {
        matches!(arena.node(*e), Node::Cmp(Rel::Eq, ..))
            && cone(arena, &[*e], |_| false).into_iter().any(of)
    };
    guard.retain(state);
    Some(guard)
}

/// The equalities between the entry's value and the packet, bit by bit.
fn matches(
    model: &mut Model,
    program: &Program,
    seen: &Seen,
    (entry, compared): (usize, &[ExprId]),
    (object, number): (usize, u32),
) -> Option<Vec<Match>> {
    let entry = model.entries.get_mut(entry)?;
    let resolver = seen.resolver();
    let fixed = seen.view.fixed();
    let guard = seen.view.memo.given(&mut entry.arena, compared, fixed);
    let arena = &entry.arena;
    let value = |bit: &Bit| match bit {
        Bit::Foreign(e, i) => {
            let (entry, from) = value_of(program, arena, (object, *e))?;
            (entry == number).then_some(8 * from + u32::from(*i))
        }
        _ => None,
    };
    let mut out = Vec::new();
    for e in conjuncts(arena, &guard) {
        let Node::Cmp(Rel::Eq, x, y) = *arena.node(e) else {
            continue;
        };
        let (x, y) = (resolver.number(arena, x), resolver.number(arena, y));
        for (x, y) in x.iter().zip(&y) {
            match (value(x), value(y)) {
                (Some(at), None) => out.push((at, *y)),
                (None, Some(at)) => out.push((at, *x)),
                _ => {}
            }
        }
    }
    Some(out)
}

/// The packets that stored what a packet is held against.
fn with_writers(
    model: &mut Model,
    touches: &Touches,
    (object, stored): (usize, &mut Stored),
    (seen, matches): (&Seen, &[Match]),
    cases: &Cases,
) -> Option<Vec<Meeting>> {
    let writers = model.objects.get(object)?.writers.clone();
    let mut out = Vec::new();
    let mut any = false;
    for w in writers {
        let covers = |m: &&Match| w.bytes().contains(&(m.0 / 8));
        let count = matches.iter().filter(covers).count();
        if count == 0 {
            continue;
        }
        if count < matches.len() {
            return None;
        }
        let at = At {
            entry: w.entry,
            path: w.path,
            access: w.access,
        };
        let all = match stored.entry(at) {
            Entry::Occupied(there) => there.into_mut(),
            Entry::Vacant(new) => {
                let arena = &mut model.entries.get_mut(w.entry)?.arena;
                let mut all = BTreeSet::new();
                for seen in touches.seen(at) {
                    let values = seen.resolver().keys(arena, &w.value);
                    all.extend(values.into_iter().map(|v| (seen.packets, v)));
                }
                new.insert(all)
            }
        };
        let own: Vec<Bit> = matches.iter().map(|m| m.1).collect();
        let mut paired = HashSet::new();
        for (other, value) in all.iter() {
            // Keys are from the most significant bit of the first byte, matches from the least.
            let bit = |m: &Match| {
                let (byte, low) = (m.0 / 8 - w.from, m.0 % 8);
                value.get((8 * byte + 7 - low) as usize).copied()
            };
            let stored: Vec<Bit> = matches.iter().filter_map(bit).collect();
            if stored.len() != own.len() {
                return None;
            }
            any = true;
            let (a, b) = (seen.packets, *other);
            if let Some(case) = equal((a.kind, &own, None), (b.kind, &stored, None))
                && paired.insert((b, stored))
            {
                let case = cases.once(case);
                out.push(Meeting { a, b, case });
            }
        }
    }
    any.then_some(out)
}
