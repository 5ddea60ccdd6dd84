//! Whether an entry that is there, or not yet, makes a difference that shows: where packets add entries, a core that has not
//! met a key finds none where one core alone would have.
//!
//! Two paths that differ in whether an entry is there, and that one packet could take, must show the same and add the same.
//! Then every packet's part of each sum is its own, whichever core had the key before. The proof is by pairs: a pair of
//! paths is no two ways of one packet where their other conditions exclude each other.

use std::collections::HashMap;

use millrace_object::program::{ObjectId, Program};

use crate::expr::given::{Facts, Given};
use crate::expr::{Arena, Bin, ExprId, Node, Origin, SymId};
use crate::model::Entry;
use crate::observe::{Leaves, Part, part};
use crate::solver::{Answer, Oracle, conjuncts};
use crate::sums::Added;

/// Most pairs of paths that are held against each other, and most questions to the solver.
const PAIRS: usize = 400_000;
const QUESTIONS: usize = 64;
/// How deep a condition is looked into.
const DEEP: u32 = 12;

/// A path by what it asks of an object's entries, and what else.
struct Way {
    path: usize,
    /// behind which cut it begins: no packet takes one of two of these instead of the other
    segment: u32,
    /// what shows of it
    shown: u64,
    /// whether entries are there, by the symbol that says it
    entries: HashMap<SymId, bool>,
    /// it is taken only where there is no room
    full: bool,
    /// other conditions
    others: Vec<ExprId>,
    /// those of them that are simple, and whether they hold
    holds: HashMap<ExprId, bool>,
}

/// Whether results differ where there is no room for one more entry; none where it shows whether an entry is there.
pub(crate) fn hidden(
    program: &Program,
    entry: &mut Entry,
    oracle: &mut Oracle,
    object: ObjectId,
    added: &[Added],
) -> Option<bool> {
    let mut ways = Vec::new();
    for path in 0..entry.paths.len() {
        let way = way(program, entry, path, object)?;
        if !way.entries.is_empty() {
            ways.push(way);
        }
    }
    let (mut pairs, mut questions, mut room) = (0, 0, false);
    for (n, a) in ways.iter().enumerate() {
        for b in ways.iter().skip(n + 1) {
            let asks = |(s, there): (&SymId, &bool)| a.entries.get(s).is_some_and(|t| t != there);
            if a.segment != b.segment || !b.entries.iter().any(asks) {
                continue;
            }
            pairs += 1;
            if pairs > PAIRS {
                return None;
            }
            let shows = a.shown == b.shown;
            let full = a.full || b.full;
            let adds = full || added.get(a.path)? == added.get(b.path)?;
            if shows && adds {
                continue;
            }
            if excluded(&entry.arena, a, b) {
                continue;
            }
            questions += 1;
            let both: Vec<ExprId> = a.others.iter().chain(&b.others).copied().collect();
            let apart = questions <= QUESTIONS
                && matches!(oracle.holds(&entry.arena, &both), Answer::Fails);
            match (apart, full) {
                (true, _) => {}
                (false, true) => room = true,
                (false, false) => return None,
            }
        }
    }
    Some(room)
}

fn way(program: &Program, entry: &mut Entry, path: usize, object: ObjectId) -> Option<Way> {
    let Entry { arena, paths, .. } = entry;
    let name = program.object(object).map_or("", |o| o.name.as_str());
    let path_of = paths.get(path)?;
    let mut way = Way {
        path,
        segment: path_of.segment,
        shown: path_of.shown(object),
        entries: HashMap::new(),
        full: false,
        others: Vec::new(),
        holds: HashMap::new(),
    };
    let mut todo = conjuncts(arena, &path_of.guard);
    todo.reverse();
    while let Some(c) = todo.pop() {
        let (plain, holds) = match arena.negated(c) {
            Some(plain) => (plain, false),
            None => (c, true),
        };
        if let Node::Sym(s) = arena.node(plain)
            && arena.symbol(*s).origin == Origin::State(object.0)
        {
            match part(name, &arena.symbol(*s).name) {
                Part::Presence => drop(way.entries.insert(*s, holds)),
                Part::Room => way.full |= holds,
                Part::Bytes(_) | Part::Other => return None,
            }
            continue;
        }
        let mut asks = None;
        Leaves::default().of(arena, &[c], |s, _, _| {
            let symbol = arena.symbol(s);
            let own = symbol.origin == Origin::State(object.0);
            if own && !matches!(part(name, &symbol.name), Part::Bytes(_)) {
                asks = Some((s, symbol.name.clone(), symbol.width));
            }
        });
        if let Some((s, name, width)) = asks {
            // Of paths that merged: where it can only be one way, it is that, and the rest asks for something else.
            let (holds, rest) = decided(arena, c, s)?;
            let symbol = arena.sym(&name, width, Origin::State(object.0));
            let literal = if holds { symbol } else { arena.not(symbol) };
            todo.extend([rest, literal]);
            continue;
        }
        way.others.push(c);
        way.holds.insert(plain, holds);
    }
    Some(way)
}

/// Truth value that a condition needs, and the condition without it; none where it may be either.
fn decided(arena: &mut Arena, condition: ExprId, symbol: SymId) -> Option<(bool, ExprId)> {
    let mut given = |value: u64| {
        let facts = Facts {
            symbols: [(symbol, value)].into(),
            ..Facts::default()
        };
        Given::new(facts).of(arena, &[condition]).first().copied()
    };
    let (no, yes) = (given(0)?, given(1)?);
    match (arena.constant(no), arena.constant(yes)) {
        (Some(0), _) => Some((true, yes)),
        (_, Some(0)) => Some((false, no)),
        _ => None,
    }
}

/// Whether no packet can take both, by their conditions as they are written.
fn excluded(arena: &Arena, a: &Way, b: &Way) -> bool {
    let against = |of: &Way, by: &Way| {
        let mut all = of.others.iter();
        all.any(|c| refuted(arena, *c, true, &by.holds, DEEP))
    };
    against(a, b) || against(b, a)
}

/// Whether a condition cannot be so where these hold.
fn refuted(arena: &Arena, e: ExprId, so: bool, holds: &HashMap<ExprId, bool>, depth: u32) -> bool {
    let (e, so) = match arena.negated(e) {
        Some(plain) => (plain, !so),
        None => (e, so),
    };
    if let Some(known) = holds.get(&e) {
        return *known != so;
    }
    let Some(deeper) = depth.checked_sub(1) else {
        return false;
    };
    match *arena.node(e) {
        Node::Bin(op @ (Bin::And | Bin::Or), x, y) if arena.width(e) == 1 => {
            let (x, y) = (
                refuted(arena, x, so, holds, deeper),
                refuted(arena, y, so, holds, deeper),
            );
            // Both have to be so, or one of them.
            if (op == Bin::And) == so {
                x || y
            } else {
                x && y
            }
        }
        _ => false,
    }
}
