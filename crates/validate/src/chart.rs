//! Selection of the path whose guard holds in an execution.
//!
//! Symbols of a path are looked up in the packet, the state before and the answers of helpers: the n-th entry
//! that a path touches has the key that the path says, evaluated, and what is under that key decides
//! `OBJECT#n.present` and `OBJECT#n[from..to]`. What no state decides, a leased number and an estimate, is
//! taken from what the execution answered at that place.

use std::collections::BTreeMap;

use millrace_dataplane::packet::{HEADROOM, TAILROOM};
use millrace_model::exec::{Place, Target};
use millrace_model::expr::eval::Assignment;
use millrace_model::expr::ids::IdMap;
use millrace_model::expr::walk::{cone, each_child};
use millrace_model::expr::{Arena, ExprId, Node, Origin, SymId};
use millrace_model::model::{Entry, Path, Verdict};
use millrace_object::program::{ObjectId, Program};
use millrace_object::state::{allocator, vector};
use millrace_reference::{Log, Touch, index_key};

use crate::stands::{Stands, stand};
use crate::trial::{Lookup, Trial, number};
use crate::turns::{Settled, has_turns};

/// A path and its symbols.
pub(crate) struct Charted {
    /// conditions on the packet, port, time and parameters alone
    plain: Vec<ExprId>,
    /// the others, by the number of places that have to be looked up first
    rest: Vec<Vec<ExprId>>,
    /// of each place, whether its key speaks of nothing that is found at this place or later
    early: Vec<bool>,
    pub(crate) symbols: Vec<(SymId, Stands)>,
    /// of a path through loops that are taken for any number of turns: what an execution settles
    pub(crate) settled: Option<Settled>,
}

/// The paths of one entry, ready to be looked up.
pub struct Chart<'a> {
    /// the entry
    pub entry: &'a Entry,
    pub(crate) base: Vec<SymId>,
    pub(crate) charted: Vec<Charted>,
    /// of each expression whether it speaks of the packet, port, time and parameters alone
    plain: Vec<bool>,
}

/// State before an execution.
pub struct Before<'a> {
    /// the value under a key
    pub value: &'a Lookup<'a>,
    /// whether no further entry fits into an object
    pub full: &'a dyn Fn(ObjectId) -> bool,
    /// what happened
    pub log: &'a Log,
}

impl Before<'_> {
    /// Value under a key before.
    #[must_use]
    pub fn at(&self, object: ObjectId, key: &[u8]) -> Option<Vec<u8>> {
        match self.log.before.get(&(object, key.to_vec())) {
            Some(before) => before.clone(),
            None => (self.value)(object, key),
        }
    }
}

/// A place's key as the object stores it; none if no entry can have it.
#[must_use]
pub fn stored_key(
    program: &Program,
    arena: &Arena,
    place: &Place,
    under: &Assignment,
) -> Option<Vec<u8>> {
    let key: Vec<u8> = (place.key.iter())
        .map(|e| under.value(arena, *e) as u8)
        .collect();
    let object = program.objects.get(place.object.0)?;
    if [&vector::KIND, &allocator::KIND].contains(&object.kind) {
        index_key(number(&key), object.key_bytes)
    } else {
        Some(key)
    }
}

/// The symbols in these expressions, in ascending order.
#[must_use]
pub fn symbols(arena: &Arena, roots: &[ExprId]) -> Vec<SymId> {
    let mut all: Vec<SymId> = (cone(arena, roots, |_| false).into_iter())
        .filter_map(|e| match arena.node(e) {
            Node::Sym(s) => Some(*s),
            _ => None,
        })
        .collect();
    all.sort_unstable();
    all.dedup();
    all
}

/// Everything that a path says.
#[must_use]
pub fn roots(path: &Path) -> Vec<ExprId> {
    let mut all = path.guard.clone();
    for w in &path.rewrites {
        all.extend(w.base);
        all.push(w.byte);
    }
    for a in &path.accesses {
        all.extend(a.key.iter().chain(&a.value).chain(&a.answer));
    }
    for p in &path.places {
        all.extend(p.key.iter().chain(p.bytes.values()));
    }
    match &path.target {
        Some(Target::Interface(e)) => all.push(*e),
        Some(Target::Entry(_, key)) => all.extend(key),
        Some(Target::All(_)) | None => {}
    }
    all.extend([path.borders.start, path.borders.end]);
    if let Verdict::Number(e) | Verdict::GoesOn(_, e) = path.verdict {
        all.push(e);
    }
    all
}

/// Whether a symbol is the same for all paths.
fn is_plain(origin: Origin) -> bool {
    matches!(
        origin,
        Origin::Length | Origin::Port | Origin::Time | Origin::Param
    )
}

impl Charted {
    /// Whether what comes in meets the conditions that speak of nothing else.
    pub(crate) fn holds(&self, arena: &Arena, base: &Assignment) -> bool {
        self.plain.iter().all(|e| base.value(arena, *e) == 1)
    }
}

/// The room before or behind every packet that is driven, if that is what a symbol is.
fn room(origin: Origin, name: &str) -> Option<u64> {
    match (origin, name) {
        (Origin::Port, "headroom") => Some(HEADROOM as u64),
        (Origin::Port, "tailroom") => Some(TAILROOM as u64),
        _ => None,
    }
}

impl<'a> Chart<'a> {
    /// Of an entry's paths.
    #[must_use]
    pub fn new(entry: &'a Entry) -> Self {
        let arena = &entry.arena;
        let mut plain = vec![false; arena.len()];
        let mut base = Vec::new();
        let mut charted = Vec::new();
        let mut stages = vec![0; arena.len()];
        for path in &entry.paths {
            let roots = roots(path);
            let mut own = Vec::new();
            // Operands have smaller numbers.
            let all = cone(arena, &roots, |_| false);
            for e in all.iter().copied() {
                let here = match arena.node(e) {
                    Node::Sym(s) => {
                        let is = is_plain(arena.symbol(*s).origin);
                        if is { &mut base } else { &mut own }.push(*s);
                        is
                    }
                    node => {
                        let mut all = true;
                        each_child(node, |c| {
                            all &= plain.get(c.0 as usize).copied().unwrap_or(false);
                        });
                        all
                    }
                };
                if let Some(slot) = plain.get_mut(e.0 as usize) {
                    *slot = here;
                }
            }
            let is_plain = |e: &ExprId| plain.get(e.0 as usize).copied().unwrap_or(false);
            let (on_packet, rest) = path.guard.iter().partition(|e| is_plain(e));
            let symbols = stand(arena, path, &own);
            let settled = has_turns(path).then(|| Settled::of(arena, path, &base, &symbols));
            let holds = |e: &&ExprId| settled.as_ref().is_none_or(|s| s.all(arena, &[**e]));
            let rest: Vec<ExprId> = rest;
            stage(arena, &all, &symbols, &mut stages);
            let stage_of = |e: &ExprId| stages.get(e.0 as usize).copied().unwrap_or(0);
            let mut by_stage = vec![Vec::new(); path.places.len() + 1];
            for e in rest.iter().filter(holds) {
                if let Some(here) = by_stage.get_mut(stage_of(e)) {
                    here.push(*e);
                }
            }
            let places = path.places.iter().enumerate();
            let early = places.map(|(i, p)| p.key.iter().all(|e| stage_of(e) <= i));
            charted.push(Charted {
                plain: on_packet,
                rest: by_stage,
                early: early.collect(),
                symbols,
                settled,
            });
        }
        base.sort_unstable();
        base.dedup();
        Self {
            entry,
            base,
            charted,
            plain,
        }
    }

    /// Whether an expression that a path speaks of is of the packet, the port, time and parameters alone.
    pub(crate) fn is_plain(&self, e: ExprId) -> bool {
        self.plain.get(e.0 as usize).copied().unwrap_or(false)
    }

    /// Whether a path's own packet has other room around it than those that are driven.
    pub(crate) fn other_room(&self, path: usize) -> bool {
        let arena = &self.entry.arena;
        let p = self.entry.paths.get(path);
        let Some((p, witness)) = p.and_then(|p| Some((p, p.witness.as_ref()?))) else {
            return false;
        };
        symbols(arena, &roots(p)).into_iter().any(|s| {
            let symbol = arena.symbol(s);
            let wanted = witness.symbols.get(&s).copied().unwrap_or(0);
            room(symbol.origin, &symbol.name).is_some_and(|driven| driven != wanted)
        })
    }

    /// Input of an execution, as numbers.
    #[must_use]
    pub fn base(&self, program: &Program, trial: &Trial) -> Assignment {
        let arena = &self.entry.arena;
        let mut symbols = IdMap::default();
        let xdp = program.dialect == millrace_object::program::Dialect::Xdp;
        for s in &self.base {
            let symbol = arena.symbol(*s);
            let value = match (symbol.origin, symbol.name.as_str()) {
                (Origin::Length, _) => trial.packet.len() as u64,
                // An interface's number is its port's, from 1.
                (Origin::Port, "port") => u64::from(trial.port) + u64::from(xdp),
                (Origin::Port, "ports") => u64::from(trial.ports),
                (Origin::Time, _) => trial.time,
                (Origin::Param, name) => {
                    let param = program.params.iter().find(|p| p.name == name);
                    param.map_or(0, |p| p.declared(program))
                }
                (origin, name) => room(origin, name).unwrap_or(0),
            };
            symbols.insert(*s, value);
        }
        let packet: BTreeMap<u64, u8> = (0..).zip(trial.packet.iter().copied()).collect();
        Assignment::new(symbols, packet)
    }

    /// The paths whose guards hold, and under what.
    #[must_use]
    pub fn holding(
        &self,
        program: &Program,
        base: &Assignment,
        before: &Before<'_>,
    ) -> Vec<(usize, Assignment)> {
        let arena = &self.entry.arena;
        let mut out = Vec::new();
        for (i, (path, charted)) in self.entry.paths.iter().zip(&self.charted).enumerate() {
            if !charted.holds(arena, base) {
                continue;
            }
            let under = bound(program, arena, path, charted, base, before);
            out.extend(under.map(|under| (i, under)));
        }
        out
    }
}

/// By expression, the number of places that have to be looked up before all of its symbols are known.
fn stage(arena: &Arena, all: &[ExprId], symbols: &[(SymId, Stands)], stages: &mut [usize]) {
    let mut own: IdMap<SymId, usize> = IdMap::default();
    for (s, stands) in symbols {
        if let Stands::Present(p) | Stands::Full(p) | Stands::Bytes(p, ..) = stands {
            own.insert(*s, p + 1);
        }
    }
    // Operands have smaller numbers.
    for e in all {
        let mut here = 0;
        match arena.node(*e) {
            Node::Sym(s) => here = own.get(s).copied().unwrap_or(0),
            node => each_child(node, |c| {
                here = here.max(stages.get(c.0 as usize).copied().unwrap_or(0));
            }),
        }
        if let Some(slot) = stages.get_mut(e.0 as usize) {
            *slot = here;
        }
    }
}

/// A path's symbols looked up, place by place; none as soon as one of its conditions does not hold. What has been
/// evaluated stays known, so an expression is evaluated only once all of its symbols are.
fn bound(
    program: &Program,
    arena: &Arena,
    path: &Path,
    charted: &Charted,
    base: &Assignment,
    before: &Before<'_>,
) -> Option<Assignment> {
    let mut under = Assignment::new(base.symbols.clone(), base.packet.clone());
    let holds = |under: &Assignment, stage: usize| {
        let here = charted.rest.get(stage);
        here.is_none_or(|all| all.iter().all(|e| under.value(arena, *e) == 1))
    };
    let touches = &before.log.touches;
    let of = |object: ObjectId, helpers: &[&str], n: usize| {
        let all = touches.iter();
        let mut all = all.filter(|t| t.object == object && helpers.contains(&t.operation));
        all.nth(n).map(|t| t.result)
    };
    for (s, stands) in &charted.symbols {
        let value = match stands {
            Stands::Leased(object, n) => of(*object, &["allocator_lease"], *n).unwrap_or(u64::MAX),
            Stands::Estimate(object, n) => {
                let calls = ["sketch_count", "sketch_add", "classify", "distributed_read"];
                of(*object, &calls, *n).unwrap_or(0)
            }
            Stands::Removed(object, n) => of(*object, &["lpm_delete"], *n).unwrap_or(0),
            Stands::NoneFree(object) => {
                let lease = |t: &&Touch| t.object == *object && t.operation == "allocator_lease";
                u64::from(match touches.iter().rev().find(lease) {
                    Some(last) => last.result == u64::MAX,
                    None => (before.full)(*object),
                })
            }
            Stands::NoRoom(object, n) => {
                let calls = [
                    "lpm_put",
                    "ringbuf_reserve",
                    "ringbuf_output",
                    "perf_event_output",
                ];
                let records = (touches.iter())
                    .filter(|t| t.object == *object && calls.contains(&t.operation));
                let answers_place =
                    |t: &Touch| matches!(t.operation, "lpm_put" | "ringbuf_reserve");
                let refused = |t: &Touch| (t.result == 0) == answers_place(t);
                u64::from(records.skip(*n).take(1).any(refused))
            }
            Stands::Answer(helper, n) => {
                let mut answers = before.log.answers.iter().filter(|a| a.0 == helper);
                answers.nth(*n).map_or(0, |a| a.1)
            }
            _ => continue,
        };
        under.symbols.insert(*s, value);
    }
    if !holds(&under, 0) {
        return None;
    }
    for (i, place) in path.places.iter().enumerate() {
        let mut own = charted.symbols.iter().filter(|(_, stands)| {
            matches!(stands, Stands::Present(p) | Stands::Full(p) | Stands::Bytes(p, ..) if *p == i)
        });
        let Some(first) = own.next() else { continue };
        // The key may depend on what earlier places held.
        let key = match charted.early.get(i) {
            Some(true) => stored_key(program, arena, place, &under),
            _ => {
                let so_far = Assignment::new(under.symbols.clone(), base.packet.clone());
                stored_key(program, arena, place, &so_far)
            }
        };
        let was = key.as_ref().and_then(|key| before.at(place.object, key));
        for (s, stands) in std::iter::once(first).chain(own) {
            let value = match stands {
                Stands::Present(_) => {
                    let object = program.objects.get(place.object.0);
                    let is = |w: &Vec<u8>| object.is_none_or(|o| o.holds(w));
                    u64::from(was.as_ref().is_some_and(is))
                }
                Stands::Full(_) => u64::from(was_full(place, key.as_deref(), before)),
                Stands::Bytes(_, from, to) => {
                    let bytes = was.as_ref().and_then(|w| w.get(*from..(*to).min(w.len())));
                    bytes.map_or(0, number)
                }
                _ => continue,
            };
            under.symbols.insert(*s, value);
        }
        if !holds(&under, i + 1) {
            return None;
        }
    }
    Some(under)
}

/// Whether there was no room for an entry: what the call said that would have added it, or what is there
/// now if there was no call.
fn was_full(place: &Place, key: Option<&[u8]>, before: &Before<'_>) -> bool {
    let mut touches = before
        .log
        .touches
        .iter()
        .filter(|t| t.object == place.object);
    let added = touches.find(|t| match t.operation {
        "allocator_lease" => true,
        "map_put" | "map_update_elem" => !t.there && Some(t.key.as_slice()) == key,
        _ => false,
    });
    match added.map(|t| (t.operation, t.result)) {
        Some(("allocator_lease", result)) => result == u64::MAX,
        Some(("map_put", result)) => result == 0,
        Some((_, result)) => result != 0,
        None => (before.full)(place.object),
    }
}
