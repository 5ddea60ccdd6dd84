//! Limits of numbers that a guard says in so many words.
//!
//! Whether a write at one computed offset may have changed a byte at another is asked for every pair of them. Both are sums of
//! header lengths, which guards compare with constants: so the difference is mostly known not to be 0 without a solver.

use std::collections::BTreeMap;
use std::rc::Rc;

use super::Engine;
use super::state::State;
use crate::expr::{Arena, Bin, ExprId, Node, Rel, mask};

/// Least and greatest value, unsigned, of some expressions.
pub(super) type Limits = BTreeMap<ExprId, (u64, u64)>;

/// How deep alternatives within alternatives are looked into.
const DEPTH: u32 = 64;

impl Engine<'_> {
    /// Whether two offsets differ whatever the packet is, as far as limits of their terms say; false where that is not known.
    pub(super) fn are_apart(&mut self, s: &State, one: ExprId, other: ExprId) -> bool {
        let difference = self.arena.minus(one, other);
        let (terms, constant) = self.arena.linear(difference);
        // The sum of the terms is known as a whole number, so that nothing wraps.
        let (mut low, mut high) = (i128::from(constant as i64), i128::from(constant as i64));
        for (term, factor) in terms {
            let bounds = self.arena.bounds(term);
            let (mut least, mut most) = bounds;
            for condition in &s.guard {
                let said = self.said(*condition, DEPTH);
                if let Some((from, to)) = said.get(&term) {
                    (least, most) = (least.max(*from), most.min(*to));
                }
            }
            let factor = i128::from(factor as i64);
            let (a, b) = (factor * i128::from(least), factor * i128::from(most));
            (low, high) = (low + a.min(b), high + a.max(b));
        }
        let wraps = low < i128::from(i64::MIN) || high > i128::from(i64::MAX);
        !wraps && (low > 0 || high < 0)
    }

    /// What a condition says of numbers where it holds.
    fn said(&mut self, condition: ExprId, depth: u32) -> Rc<Limits> {
        if let Some(known) = self.said.get(&condition) {
            return known.clone();
        }
        let none = Rc::new(Limits::new());
        let Some(deeper) = depth.checked_sub(1) else {
            return none;
        };
        let found = match *self.arena.node(condition) {
            Node::Bin(Bin::And, a, b) => {
                let mut both = Limits::clone(&self.said(a, deeper));
                for (e, (from, to)) in self.said(b, deeper).iter() {
                    let limits = both.entry(*e).or_insert((0, u64::MAX));
                    *limits = (limits.0.max(*from), limits.1.min(*to));
                }
                Rc::new(both)
            }
            Node::Bin(Bin::Or, a, b) => {
                let (a, b) = (self.said(a, deeper), self.said(b, deeper));
                let either = a.iter().filter_map(|(e, x)| {
                    let y = b.get(e)?;
                    Some((*e, (x.0.min(y.0), x.1.max(y.1))))
                });
                Rc::new(either.collect())
            }
            _ => match compared(&self.arena, condition) {
                Some((e, limits)) => Rc::new(Limits::from([(e, limits)])),
                None => none,
            },
        };
        self.said.insert(condition, found.clone());
        found
    }
}

/// A comparison with a constant, or its negation.
fn compared(arena: &Arena, condition: ExprId) -> Option<(ExprId, (u64, u64))> {
    let (negated, e) = match *arena.node(condition) {
        Node::Bin(Bin::Xor, a, b) if arena.constant(a) == Some(1) => (true, b),
        Node::Bin(Bin::Xor, a, b) if arena.constant(b) == Some(1) => (true, a),
        _ => (false, condition),
    };
    match *arena.node(e) {
        Node::Cmp(Rel::Less, a, b) => match (arena.constant(a), arena.constant(b)) {
            (Some(c), None) if negated => Some((b, (0, c))),
            (Some(c), None) => Some((b, (c.saturating_add(1), mask(arena.width(b))))),
            (None, Some(c)) if negated => Some((a, (c, mask(arena.width(a))))),
            (None, Some(c)) => Some((a, (0, c.saturating_sub(1)))),
            _ => None,
        },
        Node::Cmp(Rel::Eq, a, b) if !negated => match (arena.constant(a), arena.constant(b)) {
            (Some(c), None) => Some((b, (c, c))),
            (None, Some(c)) => Some((a, (c, c))),
            _ => None,
        },
        _ => None,
    }
}
