//! Walks over expressions, without recursion.

use std::cell::Cell;

use super::ids::IdMap;
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

/// Nodes that a walk has seen, by the number of the walk that saw it last. Most walks are short in a large arena:
/// clearing a mark for each of its nodes would be most of their work.
#[derive(Default)]
struct Seen {
    walk: u32,
    by: Vec<u32>,
}

thread_local! {
    /// Whoever walks takes it; a walk within another one's makes its own.
    static SEEN: Cell<Seen> = Cell::default();
}

impl Seen {
    /// For a walk over this arena.
    fn taken(arena: &Arena) -> Self {
        let mut seen = SEEN.take();
        match seen.walk.checked_add(1) {
            Some(next) => seen.walk = next,
            None => {
                seen = Self {
                    walk: 1,
                    ..Self::default()
                }
            }
        }
        if seen.by.len() < arena.len() {
            seen.by.resize(arena.len().next_power_of_two(), 0);
        }
        seen
    }

    /// Whether it is seen for the first time.
    fn first(&mut self, e: ExprId) -> bool {
        match self.by.get_mut(e.0 as usize) {
            Some(by) if *by != self.walk => {
                *by = self.walk;
                true
            }
            _ => false,
        }
    }

    /// For the next walk.
    fn given_back(self) {
        SEEN.set(self);
    }
}

/// Everything that these are made of, themselves included, operands first; nothing below what is
/// `known`.
#[must_use]
pub fn cone(arena: &Arena, roots: &[ExprId], known: impl Fn(ExprId) -> bool) -> Vec<ExprId> {
    cone_within(arena, roots, known, usize::MAX).unwrap_or_default()
}

/// The same; none if there are more than `most`, which is found out after this many.
#[must_use]
pub fn cone_within(
    arena: &Arena,
    roots: &[ExprId],
    known: impl Fn(ExprId) -> bool,
    most: usize,
) -> Option<Vec<ExprId>> {
    let mut all = Vec::new();
    let enough = each_within(arena, roots, known, most, |e| all.push(e));
    all.sort_unstable();
    enough.then_some(all)
}

/// The same in no order: calls `f` with each once.
pub fn each_of(
    arena: &Arena,
    roots: &[ExprId],
    known: impl Fn(ExprId) -> bool,
    f: impl FnMut(ExprId),
) {
    each_within(arena, roots, known, usize::MAX, f);
}

/// Whether that were all.
fn each_within(
    arena: &Arena,
    roots: &[ExprId],
    known: impl Fn(ExprId) -> bool,
    most: usize,
    mut f: impl FnMut(ExprId),
) -> bool {
    let mut seen = Seen::taken(arena);
    let mut todo: Vec<ExprId> = roots.to_vec();
    let (mut count, mut enough) = (0, true);
    while let Some(e) = todo.pop() {
        if known(e) || !seen.first(e) {
            continue;
        }
        if count == most {
            enough = false;
            break;
        }
        count += 1;
        f(e);
        each_child(arena.node(e), |c| todo.push(c));
    }
    seen.given_back();
    enough
}

/// The expression with the packet's bytes replaced by what `to` says of their base and offset.
pub fn rename(
    arena: &mut Arena,
    e: ExprId,
    to: &dyn Fn(Option<ExprId>, i64) -> Option<i64>,
) -> ExprId {
    let all = cone(arena, &[e], |_| false);
    rebuilt(arena, e, &all, &|arena, node, get| match node {
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

/// The expression with each choice by this condition decided; as it is if there are more than `most` nodes in
/// which to look.
pub(super) fn given_within(
    arena: &mut Arena,
    e: ExprId,
    condition: ExprId,
    holds: bool,
    most: usize,
) -> ExprId {
    match cone_within(arena, &[e], |id| id <= condition, most) {
        Some(inside) => decided(arena, e, &inside, condition, holds),
        None => e,
    }
}

fn decided(
    arena: &mut Arena,
    e: ExprId,
    inside: &[ExprId],
    condition: ExprId,
    holds: bool,
) -> ExprId {
    let by_it = |id: &ExprId| matches!(arena.node(*id), Node::Ite(c, ..) if *c == condition);
    if !inside.iter().any(by_it) {
        return e;
    }
    rebuilt(arena, e, inside, &|_, node, get| match node {
        Node::Ite(c, yes, no) if *c == condition => Some(get(if holds { yes } else { no })),
        _ => None,
    })
}

/// Replacement of a node, if not the node with its operands replaced; the last argument says what took
/// those of the operands.
type Replace<'a> = &'a dyn Fn(&mut Arena, &Node, &dyn Fn(&ExprId) -> ExprId) -> Option<ExprId>;

/// An expression with these parts of it, operands first, replaced; all others stay.
fn rebuilt(arena: &mut Arena, e: ExprId, parts: &[ExprId], replace: Replace<'_>) -> ExprId {
    let mut new: IdMap<ExprId, ExprId> = IdMap::default();
    for &id in parts {
        let get = |e: &ExprId| new.get(e).copied().unwrap_or(*e);
        let node = arena.node(id).clone();
        let width = arena.width(id);
        let made = match replace(arena, &node, &get) {
            Some(other) => other,
            None => {
                let mut same = true;
                each_child(&node, |c| same &= !new.contains_key(&c));
                if same {
                    continue;
                }
                again(arena, id, &node, width, &get)
            }
        };
        if made != id {
            new.insert(id, made);
        }
    }
    new.get(&e).copied().unwrap_or(e)
}

/// A node of other operands.
pub(super) fn again(
    arena: &mut Arena,
    id: ExprId,
    node: &Node,
    width: u32,
    get: &dyn Fn(&ExprId) -> ExprId,
) -> ExprId {
    match node {
        Node::Const(_) | Node::Sym(_) | Node::Byte { base: None, .. } => id,
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
