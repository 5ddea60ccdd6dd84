//! The conjuncts that a question must contain: the conjuncts that share a symbol or a byte with the new condition,
//! directly or through others. The rest held before and does not hear of it, so its part of an earlier assignment
//! stays (independent constraints: Cadar, Dunbar, Engler, KLEE, OSDI 2008, section 3.3).

use std::rc::Rc;

use crate::expr::ids::{IdMap, IdSet};
use crate::expr::walk::cone;
use crate::expr::{Arena, Bin, ExprId, Node};

/// The leaves of expressions, looked up once each.
#[derive(Default)]
pub(super) struct Leaves {
    known: IdMap<ExprId, Rc<[ExprId]>>,
}

impl Leaves {
    /// The symbols and packet bytes in an expression.
    pub(super) fn of(&mut self, arena: &Arena, e: ExprId) -> Rc<[ExprId]> {
        let found = self.known.entry(e).or_insert_with(|| {
            let is_leaf = |e: &ExprId| matches!(arena.node(*e), Node::Sym(_) | Node::Byte { .. });
            let all = cone(arena, &[e], |_| false);
            all.into_iter().filter(is_leaf).collect()
        });
        found.clone()
    }

    /// The condition, and what of the guard has to do with it; in a fixed order.
    pub(super) fn slice(&mut self, arena: &Arena, guard: &[ExprId], e: ExprId) -> Vec<ExprId> {
        let mut rest: Vec<(ExprId, Rc<[ExprId]>)> = conjuncts(arena, guard)
            .into_iter()
            .map(|c| (c, self.of(arena, c)))
            .collect();
        let mut taken = conjuncts(arena, &[e]);
        let mut reached: IdSet<ExprId> = IdSet::default();
        for c in &taken {
            reached.extend(self.of(arena, *c).iter());
        }
        loop {
            let before = rest.len();
            rest.retain(|(c, leaves)| {
                let apart = !leaves.iter().any(|l| reached.contains(l));
                if !apart {
                    reached.extend(leaves.iter());
                    taken.push(*c);
                }
                apart
            });
            if rest.len() == before {
                break;
            }
        }
        taken.sort_unstable();
        taken.dedup();
        taken
    }
}

/// The same with conjunctions taken apart.
pub(crate) fn conjuncts(arena: &Arena, all: &[ExprId]) -> Vec<ExprId> {
    let mut out = Vec::new();
    let mut todo: Vec<ExprId> = all.iter().rev().copied().collect();
    // Where conjunctions share what they are made of, there are more ways down than parts.
    let mut seen: IdSet<ExprId> = IdSet::default();
    while let Some(e) = todo.pop() {
        match *arena.node(e) {
            Node::Bin(Bin::And, a, b) if arena.width(e) == 1 => {
                if seen.insert(e) {
                    todo.extend([b, a]);
                }
            }
            _ => out.push(e),
        }
    }
    out
}
