//! Walks over expressions, without recursion.

use std::collections::BTreeMap;

use super::sets::Place;
use super::{Arena, ExprId, Node};

/// Calls `f` with each operand of a node.
pub fn each_child(node: &Node, mut f: impl FnMut(ExprId)) {
    match node {
        Node::Const(_) | Node::Sym(_) => {}
        Node::Byte { base, .. } => base.iter().for_each(|b| f(*b)),
        Node::Concat(parts) => parts.iter().for_each(|p| f(*p)),
        Node::Extract { of, .. } | Node::SignExtend(of) => f(*of),
        Node::Bin(_, a, b) | Node::Cmp(_, a, b) => {
            f(*a);
            f(*b);
        }
        Node::Ite(c, a, b) => {
            f(*c);
            f(*a);
            f(*b);
        }
    }
}

/// The operands of a node.
#[must_use]
pub fn children(node: &Node) -> Vec<ExprId> {
    let mut all = Vec::new();
    each_child(node, |c| all.push(c));
    all
}

/// Everything that these are made of, themselves included, operands first; nothing below what is
/// `known`.
#[must_use]
pub fn cone(arena: &Arena, roots: &[ExprId], known: impl Fn(ExprId) -> bool) -> Vec<ExprId> {
    let mut seen = vec![0_u64; arena.len().div_ceil(64)];
    let mut all = Vec::new();
    let mut todo: Vec<ExprId> = roots.to_vec();
    while let Some(e) = todo.pop() {
        let Some(word) = seen.get_mut(e.0 as usize / 64) else {
            continue;
        };
        let bit = 1 << (e.0 % 64);
        if *word & bit != 0 || known(e) {
            continue;
        }
        *word |= bit;
        all.push(e);
        each_child(arena.node(e), |c| todo.push(c));
    }
    all.sort_unstable();
    all
}

/// The expression with the packet's bytes replaced by what `to` says of their base and offset.
pub fn rename(
    arena: &mut Arena,
    e: ExprId,
    to: &dyn Fn(Option<ExprId>, i64) -> Option<i64>,
) -> ExprId {
    rebuilt(arena, e, &|arena, node, get| match node {
        Node::Byte { base, at } => {
            let moved = to(*base, *at).unwrap_or(*at);
            let at = arena.number(moved as u64, 64);
            let offset = match base {
                None => at,
                Some(b) => arena.binary(super::Bin::Add, get(b), at),
            };
            Some(arena.byte(offset))
        }
        _ => None,
    })
}

/// The expression with each choice by this condition decided.
pub fn given(arena: &mut Arena, e: ExprId, condition: ExprId, holds: bool) -> ExprId {
    let by_it = |id: &ExprId| matches!(arena.node(*id), Node::Ite(c, ..) if *c == condition);
    // What is older than the condition does not contain it.
    let inside = cone(arena, &[e], |id| id <= condition);
    if !inside.iter().any(by_it) {
        return e;
    }
    rebuilt(arena, e, &|_, node, get| match node {
        Node::Ite(c, yes, no) if *c == condition => Some(get(if holds { yes } else { no })),
        _ => None,
    })
}

/// What takes a node's place, if not the node with its operands replaced; the last argument says what took
/// those of the operands.
type Replace<'a> = &'a dyn Fn(&mut Arena, &Node, &dyn Fn(&ExprId) -> ExprId) -> Option<ExprId>;

fn rebuilt(arena: &mut Arena, e: ExprId, replace: Replace<'_>) -> ExprId {
    let mut new = super::ids::IdMap::default();
    for id in cone(arena, &[e], |_| false) {
        let get = |e: &ExprId| new.get(e).copied().unwrap_or(*e);
        let node = arena.node(id).clone();
        let made = replace(arena, &node, &get).unwrap_or_else(|| rebuilt_node(arena, id, &new));
        new.insert(id, made);
    }
    new.get(&e).copied().unwrap_or(e)
}

/// A node with what took the place of its operands.
fn rebuilt_node(arena: &mut Arena, id: ExprId, new: &super::ids::IdMap<ExprId, ExprId>) -> ExprId {
    let get = |e: &ExprId| new.get(e).copied().unwrap_or(*e);
    let node = arena.node(id).clone();
    let width = arena.width(id);
    match &node {
        Node::Const(_) | Node::Sym(_) => id,
        Node::Byte { base: None, .. } => id,
        Node::Byte { base: Some(b), at } => {
            let at = arena.number(*at as u64, 64);
            let offset = arena.binary(super::Bin::Add, get(b), at);
            arena.byte(offset)
        }
        Node::Concat(parts) => {
            let parts: Vec<ExprId> = parts.iter().map(get).collect();
            arena.concat(&parts)
        }
        Node::Extract { of, low } => arena.extract(get(of), *low, width),
        Node::SignExtend(of) => arena.sign_extend(get(of), width),
        Node::Bin(op, a, b) => arena.binary(*op, get(a), get(b)),
        Node::Cmp(rel, a, b) => arena.compare(*rel, get(a), get(b)),
        Node::Ite(c, a, b) => arena.ite(get(c), get(a), get(b)),
    }
}

/// The expressions with bytes of the packet replaced by the values that they have, by their place as it is after
/// the replacement: what a place is computed from may have been replaced, too.
pub fn with_bytes(
    arena: &mut Arena,
    roots: &[ExprId],
    values: &BTreeMap<Place, u8>,
) -> Vec<ExprId> {
    let mut new = super::ids::IdMap::default();
    for id in cone(arena, roots, |_| false) {
        let made = rebuilt_node(arena, id, &new);
        let known = match arena.node(made) {
            Node::Byte { base, at } => values.get(&(*base, *at)),
            _ => None,
        };
        let made = match known {
            Some(v) => arena.number(u64::from(*v), 8),
            None => made,
        };
        new.insert(id, made);
    }
    let of = |e: &ExprId| new.get(e).copied().unwrap_or(*e);
    roots.iter().map(of).collect()
}
