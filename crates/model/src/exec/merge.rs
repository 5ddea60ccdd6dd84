//! Paths merge where their future is the same: what they do to state and packet so far is equal, and
//! they differ in numbers only, none of them a constant (a constant is a decision that later branches ask
//! for) or a packet field as it is. Their guards become one guard's alternatives, what differs a choice between them.

use std::collections::BTreeSet;

use millrace_check::flow::places::Places;

use super::Engine;
use super::state::{Cell, State, Value};
use crate::expr::walk::each_child;
use crate::expr::{ExprId, Node};

/// Most numbers in which two paths that merge may differ.
const MOST: usize = 24;

/// Most parts of a field: each bit of 64 as one of a byte, and room.
const PARTS: u32 = 256;

/// Forgets what no later step reads.
pub(super) fn forget(s: &mut State, live: &Places) {
    for (depth, (_, regs)) in s.frames.iter_mut().enumerate() {
        let Some(level) = live.levels.get(depth) else {
            continue;
        };
        for (r, value) in regs.iter_mut().enumerate().take(10) {
            if !level.has_reg(r as u8) {
                *value = Value::Unset;
            }
        }
    }
    let depths: Vec<_> = s.frames.iter().map(|f| f.0).collect();
    s.stack.retain(|(frame, at), _| {
        let Some(depth) = depths.iter().position(|f| f == frame) else {
            return false;
        };
        let byte = u16::try_from(at + 512).unwrap_or(0);
        live.levels.get(depth).is_none_or(|l| l.has_any(byte, 1))
    });
}

impl Engine<'_> {
    /// One state for both, if they may be merged.
    pub(super) fn merged(&mut self, a: &State, b: &State) -> Option<State> {
        let same = a.at == b.at
            && a.accesses == b.accesses
            && a.places == b.places
            && a.globals == b.globals
            && a.packet == b.packet
            && a.target == b.target
            && a.borders == b.borders
            && a.loose == b.loose
            && a.tail_calls == b.tail_calls
            && a.turns == b.turns
            && a.turned == b.turned
            && a.undecided == b.undecided
            && a.frames.len() == b.frames.len();
        if !same {
            return None;
        }
        let mut differing: BTreeSet<(ExprId, ExprId)> = BTreeSet::new();
        for ((f, x), (g, y)) in a.frames.iter().zip(&b.frames) {
            if f != g {
                return None;
            }
            for (v, w) in x.iter().zip(y) {
                match (v, w) {
                    _ if v == w => {}
                    (Value::Num(p), Value::Num(q)) => {
                        differing.insert((*p, *q));
                    }
                    // What only some ways set is read on none.
                    (Value::Unset, _) | (_, Value::Unset) => {}
                    _ => return None,
                }
            }
        }
        for (k, v) in &a.stack {
            match (v, b.stack.get(k)) {
                (_, None) => {}
                (v, Some(w)) if v == w => {}
                (Cell::Byte(p), Some(Cell::Byte(q))) => {
                    differing.insert((*p, *q));
                }
                _ => return None,
            }
        }
        let constant = |e: ExprId| self.arena.constant(e).is_some();
        let kept = |e: ExprId| constant(e) || self.is_field(e);
        if differing.len() > MOST || differing.iter().any(|(p, q)| kept(*p) || kept(*q)) {
            return None;
        }
        Some(self.merge(a, b))
    }

    /// Whether a number is bytes of the packet as they are. Merged, a field of one header and of another
    /// would be a choice that no reader, and no key, could be told from.
    fn is_field(&self, e: ExprId) -> bool {
        let mut todo = vec![e];
        let mut left = PARTS;
        while let Some(e) = todo.pop() {
            let node = self.arena.node(e);
            let plain = matches!(
                node,
                Node::Byte { .. } | Node::Concat(_) | Node::Extract { .. } | Node::Const(_)
            );
            if !plain || left == 0 {
                return false;
            }
            left -= 1;
            each_child(node, |c| todo.push(c));
        }
        true
    }

    fn merge(&mut self, a: &State, b: &State) -> State {
        let common = a
            .guard
            .iter()
            .zip(&b.guard)
            .take_while(|(x, y)| x == y)
            .count();
        let this = self.arena.all(&a.guard[common..]);
        let that = self.arena.all(&b.guard[common..]);
        let mut s = a.clone();
        s.guard.truncate(common);
        let either = self.arena.either(this, that);
        if self.arena.constant(either) != Some(1) {
            s.guard.push(either);
        }
        for ((_, x), (_, y)) in s.frames.iter_mut().zip(&b.frames) {
            for (v, w) in x.iter_mut().zip(y) {
                *v = match (*v, *w) {
                    (v, w) if v == w => v,
                    (Value::Num(p), Value::Num(q)) => Value::Num(self.arena.ite(this, p, q)),
                    _ => Value::Unset,
                };
            }
        }
        s.stack.retain(|k, _| b.stack.contains_key(k));
        for (k, v) in &mut s.stack {
            if let (Cell::Byte(p), Some(Cell::Byte(q))) = (*v, b.stack.get(k)) {
                *v = Cell::Byte(self.arena.ite(this, p, *q));
            }
        }
        s.steps = a.steps.max(b.steps);
        s.draws = a.draws.max(b.draws);
        s.model = a.model.clone().or_else(|| b.model.clone());
        s
    }
}
