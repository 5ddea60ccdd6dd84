//! Paths merge where their future is the same: they touched the same state in the same way, and differ in numbers
//! only. None of those in registers and on the stack is a constant (a decision that later branches ask for) or a
//! packet field as it is; of two that were written to the same byte of a packet or value one at least is computed.
//! Their guards become one guard's alternatives, what differs a choice between them.

use std::collections::BTreeSet;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};

use millrace_check::flow::places::Places;
use millrace_object::insn::STACK;

use super::state::{Access, Cell, Place, State, Value, Written};
use super::{Engine, tell};
use crate::expr::walk::each_child;
use crate::expr::{ExprId, Node};

/// Most numbers in which two paths that merge may differ, and most bytes that they wrote.
const MOST: usize = 24;
const MOST_BYTES: usize = 64;

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
        let byte = u16::try_from(at + STACK).unwrap_or(0);
        live.levels.get(depth).is_none_or(|l| l.has_any(byte, 1))
    });
}

/// A byte of the packet that two paths have written.
struct Pair {
    base: Option<ExprId>,
    at: i64,
    this: ExprId,
    that: ExprId,
}

/// Number that paths that merge have in common: what they touched and where they are.
pub(super) fn kind(s: &State) -> u64 {
    let mut h = DefaultHasher::new();
    (s.at, s.frames.len(), s.turns, s.segment, s.tail_calls).hash(&mut h);
    for a in &s.accesses {
        (a.object, a.entry, a.operation, &a.key, a.outcome).hash(&mut h);
        (a.offset, a.chosen).hash(&mut h);
    }
    for p in &s.places {
        (p.object, &p.key, p.bytes.len(), p.doubts).hash(&mut h);
    }
    h.finish()
}

/// Whether accesses are the same but for what they write.
fn alike(a: &[Access], b: &[Access]) -> bool {
    // Named one by one, so that no field that is added is forgotten here.
    fn but_for_value(a: &Access) -> impl PartialEq + '_ {
        let Access {
            object,
            entry,
            operation,
            effect,
            key,
            value,
            offset,
            bytes,
            chosen,
            answer,
            outcome,
            repeated,
            line,
        } = a;
        let written = value.len();
        let what = (object, entry, operation, effect, key, written);
        (what, offset, bytes, chosen, answer, outcome, repeated, line)
    }
    a.len() == b.len() && a.iter().map(but_for_value).eq(b.iter().map(but_for_value))
}

/// Whether entries are the same but for the bytes written to them.
fn equal_but_bytes(a: &[Place], b: &[Place]) -> bool {
    fn but_for_bytes(p: &Place) -> impl PartialEq + '_ {
        let Place {
            object,
            key,
            stem,
            bytes: _,
            presence,
            fresh,
            lapsed,
            doubts,
            room,
            slot,
            turned,
        } = p;
        let what = (object, key, stem, presence, fresh);
        (what, lapsed, doubts, room, slot, turned)
    }
    let same = |(x, y): (&Place, &Place)| x.bytes.keys().eq(y.bytes.keys());
    a.len() == b.len()
        && a.iter().map(but_for_bytes).eq(b.iter().map(but_for_bytes))
        && a.iter().zip(b).all(same)
}

impl Engine<'_> {
    /// One state for both, if they may be merged.
    pub(super) fn merged(&mut self, a: &State, b: &State) -> Option<State> {
        let same = a.at == b.at
            && alike(&a.accesses, &b.accesses)
            && equal_but_bytes(&a.places, &b.places)
            && a.globals == b.globals
            && a.target == b.target
            && a.borders == b.borders
            && a.loose == b.loose
            && a.tail_calls == b.tail_calls
            && a.turns == b.turns
            && a.segment == b.segment
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
                    (Value::Ptr(r, p), Value::Ptr(t, q)) if r == t && self.crowded => {
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
        let kept = |e: &ExprId| self.is_kept(*e);
        if differing.len() > MOST || differing.iter().any(|(p, q)| kept(p) || kept(q)) {
            return None;
        }
        let written = Self::written_apart(a, b)?;
        let values = a.accesses.iter().zip(&b.accesses);
        let values = values.flat_map(|(x, y)| x.value.iter().zip(&y.value));
        let places = a.places.iter().zip(&b.places);
        let places = places.flat_map(|(x, y)| x.bytes.values().zip(y.bytes.values()));
        let mut bytes: BTreeSet<(ExprId, ExprId)> = values
            .chain(places)
            .map(|(x, y)| (*x, *y))
            .filter(|(x, y)| x != y)
            .collect();
        let pairs = written.1.iter().filter(|p| p.this != p.that);
        bytes.extend(pairs.map(|p| (p.this, p.that)));
        let most = if self.strict { 0 } else { MOST_BYTES };
        if bytes.len() > most || bytes.iter().any(|(p, q)| kept(p) && kept(q)) {
            return None;
        }
        Some(self.merge(a, b, &written))
    }

    /// Up to where two paths wrote the same to the packet, and the bytes that they wrote after that; none if these
    /// are not the same bytes, or that cannot be told.
    fn written_apart(a: &State, b: &State) -> Option<(usize, Vec<Pair>)> {
        let pairs = a.packet.iter().zip(&b.packet);
        let common = pairs.take_while(|(x, y)| x == y).count();
        let later = |s: &State| -> Vec<Written> { s.packet.iter().skip(common).copied().collect() };
        let (x, y) = (later(a), later(b));
        let mut all = x.iter().chain(&y);
        let Some(first) = all.next() else {
            return Some((common, Vec::new()));
        };
        // Of writes at offsets that are computed in several ways the last one counts, whichever byte it is.
        if all.any(|w| w.base != first.base) || x.len() + y.len() > 4 * MOST_BYTES {
            return None;
        }
        // Who writes other bytes rewrites other fields.
        let before = a.packet.iter().take(common).rev();
        let before = before.take_while(|w| w.base == first.base);
        let before: Vec<Written> = before.copied().collect();
        let now = |list: &[Written], at: i64| {
            let mut latest = list.iter().rev().chain(&before);
            latest.find(|w| w.at == at).map(|w| w.byte)
        };
        let at: BTreeSet<i64> = x.iter().chain(&y).map(|w| w.at).collect();
        let mut out = Vec::new();
        for at in at {
            let (this, that) = (now(&x, at)?, now(&y, at)?);
            out.push(Pair {
                base: first.base,
                at,
                this,
                that,
            });
        }
        Some((common, out))
    }

    /// Whether a number is a decision that later branches ask for, or what readers and keys are told by.
    pub(super) fn is_kept(&self, e: ExprId) -> bool {
        self.arena.constant(e).is_some() || self.is_field(e)
    }

    /// Whether a number is bytes of the packet as they are. Merged, a field of one header and of another
    /// would be a choice that no reader, and no key, could be told from.
    fn is_field(&self, e: ExprId) -> bool {
        let mut todo = vec![e];
        let mut left = PARTS;
        while let Some(e) = todo.pop() {
            let node = self.arena.node(e);
            let plain = match node {
                Node::Byte { base, .. } => base.is_none() || !self.crowded,
                _ => matches!(
                    node,
                    Node::Concat(_) | Node::Extract { .. } | Node::Const(_)
                ),
            };
            if !plain || left == 0 {
                return false;
            }
            left -= 1;
            each_child(node, |c| todo.push(c));
        }
        true
    }

    fn merge(
        &mut self,
        a: &State,
        b: &State,
        (common_writes, pairs): &(usize, Vec<Pair>),
    ) -> State {
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
                    (Value::Ptr(r, p), Value::Ptr(t, q)) if r == t => {
                        Value::Ptr(r, self.arena.ite(this, p, q))
                    }
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
        s.packet.truncate(*common_writes);
        for p in pairs {
            let byte = self.arena.ite(this, p.this, p.that);
            s.packet.push(Written {
                base: p.base,
                at: p.at,
                byte,
            });
        }
        for (x, y) in s.accesses.iter_mut().zip(&b.accesses) {
            for (v, w) in x.value.iter_mut().zip(&y.value) {
                *v = self.arena.ite(this, *v, *w);
            }
        }
        for (x, y) in s.places.iter_mut().zip(&b.places) {
            for (v, w) in x.bytes.values_mut().zip(y.bytes.values()) {
                *v = self.arena.ite(this, *v, *w);
            }
        }
        tell::joined(&mut s, b, &[this, that]);
        s.steps = a.steps.max(b.steps);
        s.draws = a.draws.max(b.draws);
        // A draw behind this is another one of the packet's where one of them had more.
        if b.drawn.len() > s.drawn.len() {
            s.drawn.clone_from(&b.drawn);
        }
        s.model = a.model.clone().or_else(|| b.model.clone());
        s
    }
}
