//! What a guard says of packets, taken apart.

use std::collections::BTreeMap;

use millrace_model::expr::{Arena, Bin, ExprId, Node, Rel};

use crate::memo::Memo;
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

/// What a guard says of conditions.
pub(crate) fn conditions(arena: &Arena, guard: &[ExprId]) -> BTreeMap<ExprId, bool> {
    let said = |e: ExprId| match arena.negated(e) {
        Some(contrary) => (contrary, false),
        None => (e, true),
    };
    conjuncts(arena, guard).into_iter().map(said).collect()
}

/// The parts of a guard that speak of the packet alone.
pub(crate) fn of_packet(arena: &Arena, memo: &Memo, guard: &[ExprId]) -> Vec<ExprId> {
    let plain = |e: ExprId| {
        let inner = arena.negated(e).unwrap_or(e);
        !matches!(arena.node(inner), Node::Bin(Bin::And | Bin::Or, ..))
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
            match arena.node(e) {
                Node::Sym(s) => return arena.symbol(*s).name == "length",
                Node::Concat(parts) => match parts.as_ref() {
                    [high, low] if arena.constant(*high) == Some(0) => e = *low,
                    _ => return false,
                },
                Node::Extract { of, low: 0 } => e = *of,
                _ => return false,
            }
        }
    };
    let (condition, holds) = match arena.negated(e) {
        Some(inner) => (inner, false),
        None => (e, true),
    };
    let Node::Cmp(Rel::Less, a, b) = *arena.node(condition) else {
        return None;
    };
    match holds {
        false if is_length(a) => Some(Offset::of(arena, (Some(b), -1))),
        true if is_length(b) => Some(Offset::of(arena, (Some(a), 0))),
        _ => None,
    }
}
