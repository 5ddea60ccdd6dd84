//! Joins in loops: a state behind a cut that stands for those of all turns, so that it is followed once.

use super::super::Engine;
use super::super::state::{Cell, Place, Region, State, Value, Written};
use super::likeness::latest;
use crate::expr::{ExprId, Node, Origin};

impl Engine<'_> {
    /// Of a state that one behind a cut stands for, too: its numbers that are any there, each with the place that it has
    /// among all; none where it does not stand for it.
    pub(super) fn left_for(&self, joint: &State, s: &State) -> Option<Vec<(usize, ExprId)>> {
        if !joint.guard.iter().all(|c| s.guard.contains(c)) {
            return None;
        }
        let pairs = pairs(joint, s)?;
        let free = |(any, e): &(ExprId, ExprId)| any == e || self.is_free(*any, *e);
        let differ = |(_, (any, e)): &(usize, (ExprId, ExprId))| any != e;
        pairs.iter().all(free).then(|| {
            let left = pairs.into_iter().enumerate().filter(differ);
            left.map(|(at, (_, e))| (at, e)).collect()
        })
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
}

/// The numbers of a state behind a cut, each with what another one has in its place; none where they differ in more.
fn pairs(joint: &State, s: &State) -> Option<Vec<(ExprId, ExprId)>> {
    let mut out = Vec::new();
    let values = |s: &State| -> Vec<Value> { s.frames.iter().flat_map(|f| f.1).collect() };
    let (mine, other) = (values(joint), values(s));
    if mine.len() != other.len() {
        return None;
    }
    for (v, w) in mine.into_iter().zip(other) {
        value_pairs((joint, v), (s, w), &mut out)?;
    }
    for (at, cell) in &joint.stack {
        match (cell, s.stack.get(at)?) {
            (Cell::Byte(any), Cell::Byte(e)) => out.push((*any, *e)),
            (Cell::Part(v, p), Cell::Part(w, q)) if p == q => {
                value_pairs((joint, *v), (s, *w), &mut out)?;
            }
            _ => return None,
        }
    }
    let (mine, other) = (latest(&joint.packet), latest(&s.packet));
    let places = |all: &[Written]| -> Vec<_> { all.iter().map(|w| (w.base, w.at)).collect() };
    if places(&mine) != places(&other) {
        return None;
    }
    out.extend(mine.iter().zip(&other).map(|(w, v)| (w.byte, v.byte)));
    // What a packet keeps for itself, whether or not something points to it.
    for p in joint.places.iter().filter(|p| !p.bytes.is_empty()) {
        let same = |q: &&Place| q.object == p.object && q.key == p.key && q.lapsed.is_none();
        byte_pairs(p, s.places.iter().find(same)?, &mut out)?;
    }
    Some(out)
}

fn value_pairs(
    (joint, v): (&State, Value),
    (s, w): (&State, Value),
    out: &mut Vec<(ExprId, ExprId)>,
) -> Option<()> {
    match (v, w) {
        (Value::Num(any), Value::Num(e)) => out.push((any, e)),
        (Value::Inner(o, any), Value::Inner(p, e)) if o == p => out.push((any, e)),
        (Value::Ptr(Region::Place(a), x), Value::Ptr(Region::Place(b), y)) if x == y => {
            let (a, b) = (joint.places.get(a)?, s.places.get(b)?);
            if a.object != b.object || (a.slot.is_some() && a.slot != b.slot) {
                return None;
            }
            out.extend(a.key.iter().copied().zip(b.key.iter().copied()));
            byte_pairs(a, b, out)?;
        }
        (Value::Ptr(Region::Packet, x), Value::Ptr(Region::Packet, y)) => out.push((x, y)),
        (Value::Unset, _) => {}
        (v, w) if v == w => {}
        _ => return None,
    }
    Some(())
}

/// Facts about an entry's bytes, and the bytes of another one in their place.
fn byte_pairs(p: &Place, q: &Place, out: &mut Vec<(ExprId, ExprId)>) -> Option<()> {
    for (at, e) in &p.bytes {
        out.push((*e, *q.bytes.get(at)?));
    }
    Some(())
}
