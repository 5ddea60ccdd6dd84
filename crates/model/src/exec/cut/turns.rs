//! Joins in loops: a state behind a cut that stands for those of all turns, so that it is followed once.

use std::collections::BTreeSet;

use super::super::Engine;
use super::super::state::{Cell, Region, State, Value};
use super::likeness::latest;
use crate::expr::{ExprId, Node, Origin};

impl Engine<'_> {
    /// Whether a state behind a cut stands for another one, too: what they differ in is any number there.
    pub(super) fn stands_for(&self, joint: &State, s: &State) -> bool {
        if !joint.guard.iter().all(|c| s.guard.contains(c)) {
            return false;
        }
        let free = |any: ExprId, e: ExprId| any == e || self.is_free(any, e);
        let (mut regs, mut others) = (
            joint.frames.iter().flat_map(|f| &f.1),
            s.frames.iter().flat_map(|f| &f.1),
        );
        let same = |v: &Value, w: &Value| match (*v, *w) {
            (Value::Num(any), Value::Num(e)) => free(any, e),
            (Value::Inner(o, any), Value::Inner(p, e)) => o == p && free(any, e),
            (Value::Ptr(Region::Place(a), x), Value::Ptr(Region::Place(b), y)) => {
                let (a, b) = (joint.places.get(a), s.places.get(b));
                let (Some(a), Some(b)) = (a, b) else {
                    return false;
                };
                let key = a.key.iter().zip(&b.key).all(|(a, b)| free(*a, *b));
                let bytes = a
                    .bytes
                    .iter()
                    .all(|(at, e)| b.bytes.get(at).is_some_and(|b| free(*e, *b)));
                x == y && key && bytes && a.object == b.object
            }
            (Value::Unset, _) => true,
            (v, w) => v == w,
        };
        let registers = loop {
            match (regs.next(), others.next()) {
                (Some(v), Some(w)) if same(v, w) => {}
                (None, None) => break true,
                _ => break false,
            }
        };
        let stack = joint
            .stack
            .iter()
            .all(|(at, cell)| match (cell, s.stack.get(at)) {
                (Cell::Byte(any), Some(Cell::Byte(e))) => free(*any, *e),
                (Cell::Part(v, p), Some(Cell::Part(w, q))) => p == q && same(v, w),
                _ => false,
            });
        // What was written in the one and not in the other has been looked at when they were told apart, or is not
        // the same.
        let (mine, other) = (latest(&joint.packet), latest(&s.packet));
        let packet = mine.len() == other.len()
            && mine
                .iter()
                .zip(&other)
                .all(|(w, v)| (w.base, w.at) == (v.base, v.at) && free(w.byte, v.byte));
        // What a packet keeps for itself is not what another turn has left.
        let scratch = joint
            .places
            .iter()
            .filter(|p| !p.bytes.is_empty())
            .all(|p| {
                s.places.iter().any(|q| {
                    q.object == p.object
                        && q.key == p.key
                        && q.lapsed.is_none()
                        && p.bytes
                            .iter()
                            .all(|(at, e)| q.bytes.get(at).is_some_and(|b| free(*e, *b)))
                })
            });
        registers && stack && packet && scratch
    }

    /// Whether a number is a symbol of a cut, or a part of one, of which nothing is known, and wide enough for another.
    fn is_free(&self, any: ExprId, e: ExprId) -> bool {
        let symbol = |e: ExprId| match self.arena.node(e) {
            Node::Sym(s) => Some(*s),
            _ => None,
        };
        let found = match self.arena.node(any) {
            Node::Sym(s) => Some((*s, self.arena.width(any))),
            Node::Extract { of, .. } => symbol(*of).map(|s| (s, self.arena.width(any))),
            Node::Concat(parts) => match parts.as_ref() {
                [zeros, low] if self.arena.constant(*zeros) == Some(0) => {
                    symbol(*low).map(|s| (s, self.arena.width(*low)))
                }
                _ => None,
            },
            _ => None,
        };
        found.is_some_and(|(s, bits)| {
            self.arena.symbol(s).origin == Origin::Turn && self.arena.significant(e) <= bits
        })
    }

    /// The numbers of a state that are any behind a cut.
    pub(super) fn left_for(&self, joint: &State, s: &State) -> Vec<(usize, ExprId)> {
        // Each with the place that it has among them.
        let (mut out, mut at) = (Vec::new(), 0);
        let mut add = |a: ExprId, b: ExprId| {
            at += 1;
            if a != b {
                out.push((at, b));
            }
        };
        let values = |s: &State| -> Vec<Value> { s.frames.iter().flat_map(|f| f.1).collect() };
        let mut places = BTreeSet::new();
        for (v, w) in values(joint).into_iter().zip(values(s)) {
            match (v, w) {
                (Value::Num(a), Value::Num(b)) | (Value::Inner(_, a), Value::Inner(_, b)) => {
                    add(a, b);
                }
                (Value::Ptr(Region::Place(a), _), Value::Ptr(Region::Place(b), _)) => {
                    places.insert((a, b));
                }
                _ => {}
            }
        }
        for (at, cell) in &joint.stack {
            match (cell, s.stack.get(at)) {
                (Cell::Byte(a), Some(Cell::Byte(b))) => add(*a, *b),
                (Cell::Part(v, _), Some(Cell::Part(w, _))) => match (*v, *w) {
                    (Value::Num(a), Value::Num(b)) | (Value::Inner(_, a), Value::Inner(_, b)) => {
                        add(a, b);
                    }
                    (Value::Ptr(Region::Place(a), _), Value::Ptr(Region::Place(b), _)) => {
                        places.insert((a, b));
                    }
                    _ => {}
                },
                _ => {}
            }
        }
        for (a, b) in places {
            if let (Some(p), Some(q)) = (joint.places.get(a), s.places.get(b)) {
                p.key.iter().zip(&q.key).for_each(|(a, b)| add(*a, *b));
                for (at, a) in &p.bytes {
                    if let Some(b) = q.bytes.get(at) {
                        add(*a, *b);
                    }
                }
            }
        }
        for (w, v) in latest(&joint.packet).iter().zip(&latest(&s.packet)) {
            add(w.byte, v.byte);
        }
        out
    }
}
