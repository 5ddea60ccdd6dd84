//! Decomposition of a guard into conditions on packets.

use std::collections::BTreeMap;

use millrace_model::expr::{Arena, Bin, ExprId, Node, Rel};

use crate::memo::{Memo, unextended};
use crate::offset::Offset;

/// The parts of a conjunction that stand in a guard.
pub(crate) fn conjuncts(arena: &Arena, guard: &[ExprId]) -> Vec<ExprId> {
    let (mut out, mut todo) = (Vec::new(), guard.to_vec());
    while let Some(e) = todo.pop() {
        match *arena.node(e) {
            Node::Bin(Bin::And, a, b) if arena.width(e) == 1 => todo.extend([a, b]),
            _ => out.push(e),
        }
    }
    out
}

/// Conditions of a guard.
pub(crate) fn conditions(arena: &Arena, guard: &[ExprId]) -> BTreeMap<ExprId, bool> {
    let all = conjuncts(arena, guard).into_iter();
    all.map(|e| stated(arena, e)).collect()
}

/// A condition without its negation, and whether it is said to hold.
pub(crate) fn stated(arena: &Arena, e: ExprId) -> (ExprId, bool) {
    arena.negated(e).map_or((e, true), |inner| (inner, false))
}

/// The parts of a guard that speak of the packet alone.
pub(crate) fn of_packet(arena: &Arena, memo: &Memo, guard: &[ExprId]) -> Vec<ExprId> {
    let plain = |e: ExprId| {
        !matches!(
            arena.node(stated(arena, e).0),
            Node::Bin(Bin::And | Bin::Or, ..)
        )
    };
    let mut all = conjuncts(arena, guard);
    // What is said of the packet beside state, where paths merged, stays.
    all.retain(|e| !plain(*e) || !memo.parts(arena, *e).foreign);
    all.sort_unstable();
    all.dedup();
    all
}

/// The last byte that is there where a condition holds that speaks of the packet's length.
pub(crate) fn last_byte(arena: &Arena, e: ExprId) -> Option<Offset> {
    let is_length = |mut e: ExprId| {
        loop {
            match arena.node(unextended(arena, e)) {
                Node::Sym(s) => return arena.symbol(*s).name == "length",
                Node::Extract { of, low: 0 } => e = *of,
                _ => return false,
            }
        }
    };
    let (condition, holds) = stated(arena, e);
    let Node::Cmp(Rel::Less, a, b) = *arena.node(condition) else {
        return None;
    };
    match holds {
        false if is_length(a) => Some(Offset::of(arena, (Some(b), -1))),
        true if is_length(b) => Some(Offset::of(arena, (Some(a), 0))),
        _ => None,
    }
}
