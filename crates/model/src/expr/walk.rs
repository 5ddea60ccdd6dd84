//! Walks over expressions, without recursion.

use std::collections::BTreeMap;

use super::ids::{IdMap, IdSet};
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

/// Beyond so many nodes a walk marks them in a set of bits as large as the arena.
const SPARSE: usize = 1024;

/// What a walk has seen. Most walks are short in a large arena: clearing a bit for each of its nodes would be
/// most of their work.
struct Seen {
    few: IdSet<ExprId>,
    many: Vec<u64>,
}

impl Seen {
    fn new() -> Self {
        Self {
            few: IdSet::default(),
            many: Vec::new(),
        }
    }

    /// Whether it is seen for the first time.
    fn first(&mut self, arena: &Arena, e: ExprId) -> bool {
        if self.many.is_empty() {
            if self.few.len() < SPARSE {
                return self.few.insert(e);
            }
            self.many = vec![0; arena.len().div_ceil(64)];
            for e in std::mem::take(&mut self.few) {
                self.mark(e);
            }
        }
        self.mark(e)
    }

    fn mark(&mut self, e: ExprId) -> bool {
        let Some(word) = self.many.get_mut(e.0 as usize / 64) else {
            return false;
        };
        let bit = 1 << (e.0 % 64);
        let first = *word & bit == 0;
        *word |= bit;
        first
    }
}

/// Everything that these are made of, themselves included, operands first; nothing below what is
/// `known`.
#[must_use]
pub fn cone(arena: &Arena, roots: &[ExprId], known: impl Fn(ExprId) -> bool) -> Vec<ExprId> {
    cone_within(arena, roots, known, usize::MAX).unwrap_or_default()
}

/// The same; none if there are more than `most`, which is found out after so many.
#[must_use]
pub fn cone_within(
    arena: &Arena,
    roots: &[ExprId],
    known: impl Fn(ExprId) -> bool,
    most: usize,
) -> Option<Vec<ExprId>> {
    let mut seen = Seen::new();
    let mut all = Vec::new();
    let mut todo: Vec<ExprId> = roots.to_vec();
    while let Some(e) = todo.pop() {
        if known(e) || !seen.first(arena, e) {
            continue;
        }
        if all.len() == most {
            return None;
        }
        all.push(e);
        each_child(arena.node(e), |c| todo.push(c));
    }
    all.sort_unstable();
    Some(all)
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

/// What takes a node's place, if not the node with its operands replaced; the last argument says what took
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
fn again(
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

/// What is known of some packets.
#[derive(Clone, Debug, Default)]
pub struct Facts {
    /// bytes that they have, by their place as it is once the other bytes are known: what a place is computed
    /// from may be known, too
    pub bytes: BTreeMap<Place, u8>,
    /// conditions, as they are once the bytes are known, and whether they hold
    pub conditions: BTreeMap<ExprId, bool>,
}

/// The expressions with what is known in place of what they are made of.
pub fn with_facts(arena: &mut Arena, roots: &[ExprId], facts: &Facts) -> Vec<ExprId> {
    let mut new: IdMap<ExprId, ExprId> = IdMap::default();
    for id in cone(arena, roots, |_| false) {
        let node = arena.node(id).clone();
        let mut same = true;
        each_child(&node, |c| same &= !new.contains_key(&c));
        let made = if same {
            id
        } else {
            let width = arena.width(id);
            again(arena, id, &node, width, &|e| {
                new.get(e).copied().unwrap_or(*e)
            })
        };
        let known = match arena.node(made) {
            Node::Byte { base, at } => facts.bytes.get(&(*base, *at)).map(|v| u64::from(*v)),
            _ => facts.conditions.get(&made).map(|v| u64::from(*v)),
        };
        let made = match known {
            Some(v) => arena.number(v, arena.width(made)),
            None => made,
        };
        if made != id {
            new.insert(id, made);
        }
    }
    let of = |e: &ExprId| new.get(e).copied().unwrap_or(*e);
    roots.iter().map(of).collect()
}
