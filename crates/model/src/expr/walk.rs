//! Walks over expressions, without recursion.

use std::collections::HashSet;

use super::{Arena, ExprId, Node};

/// The operands of a node.
#[must_use]
pub fn children(node: &Node) -> Vec<ExprId> {
    match node {
        Node::Const(_) | Node::Sym(_) => Vec::new(),
        Node::Byte { base, .. } => base.iter().copied().collect(),
        Node::Concat(parts) => parts.to_vec(),
        Node::Extract { of, .. } | Node::SignExtend(of) => vec![*of],
        Node::Bin(_, a, b) | Node::Cmp(_, a, b) => vec![*a, *b],
        Node::Ite(c, a, b) => vec![*c, *a, *b],
    }
}

/// Everything that these are made of, themselves included, operands first; nothing below what is
/// `known`.
#[must_use]
pub fn cone(arena: &Arena, roots: &[ExprId], known: impl Fn(ExprId) -> bool) -> Vec<ExprId> {
    let mut seen = HashSet::new();
    let mut todo: Vec<ExprId> = roots.to_vec();
    while let Some(e) = todo.pop() {
        if known(e) || !seen.insert(e) {
            continue;
        }
        todo.extend(children(arena.node(e)));
    }
    let mut all: Vec<ExprId> = seen.into_iter().collect();
    all.sort_unstable();
    all
}

/// The expression with the packet's bytes replaced by what `to` says of their base and offset.
pub fn rename(
    arena: &mut Arena,
    e: ExprId,
    to: &dyn Fn(Option<ExprId>, i64) -> Option<i64>,
) -> ExprId {
    let mut new = std::collections::HashMap::new();
    for id in cone(arena, &[e], |_| false) {
        let get = |e: &ExprId| new.get(e).copied().unwrap_or(*e);
        let node = arena.node(id).clone();
        let width = arena.width(id);
        let made = match &node {
            Node::Const(_) | Node::Sym(_) => id,
            Node::Byte { base, at } => {
                let moved = to(*base, *at).unwrap_or(*at);
                let offset = match base {
                    None => arena.number(moved as u64, 64),
                    Some(b) => {
                        let at = arena.number(moved as u64, 64);
                        arena.binary(super::Bin::Add, *b, at)
                    }
                };
                arena.byte(offset)
            }
            Node::Concat(parts) => {
                let parts: Vec<ExprId> = parts.iter().map(get).collect();
                arena.concat(&parts)
            }
            Node::Extract { of, low } => {
                let of = get(of);
                arena.extract(of, *low, width)
            }
            Node::SignExtend(of) => {
                let of = get(of);
                arena.sign_extend(of, width)
            }
            Node::Bin(op, a, b) => {
                let (a, b) = (get(a), get(b));
                arena.binary(*op, a, b)
            }
            Node::Cmp(rel, a, b) => {
                let (a, b) = (get(a), get(b));
                arena.compare(*rel, a, b)
            }
            Node::Ite(c, a, b) => {
                let (c, a, b) = (get(c), get(a), get(b));
                arena.ite(c, a, b)
            }
        };
        new.insert(id, made);
    }
    new.get(&e).copied().unwrap_or(e)
}
