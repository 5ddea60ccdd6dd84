//! Observable values without an expression: the arguments of calls that are taken
//! for any number, what a loop starts from that is taken for any number of turns, and the conditions of calls that only
//! one of two merged paths made. Whoever asks what a path depends on asks for these as well (observe.rs).

use std::collections::BTreeSet;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};

use millrace_object::helper::Helper;

use super::Engine;
use super::state::{Cell, Region, State, Value};
use crate::expr::{ExprId, Origin};

impl Engine<'_> {
    /// Notes that something outside, or a symbol of its own, depends on these.
    pub(super) fn tell(&self, s: &mut State, roots: &[ExprId]) {
        let unknown = |e: &&ExprId| self.arena.constant(**e).is_none();
        s.told.extend(roots.iter().filter(unknown));
    }

    /// Notes all that a call is given: its numbers, and all memory that its pointers lead into, of whichever length.
    pub(super) fn tell_all(&mut self, s: &mut State, h: &Helper) {
        s.tells = numbered(s.tells, s.at as u64);
        self.tell_arguments(s, h);
    }

    /// Notes what a call is given of which nothing is heard outside, but which decides its answer.
    pub(super) fn tell_arguments(&mut self, s: &mut State, h: &Helper) {
        let mut seen = BTreeSet::new();
        let mut roots = Vec::new();
        for r in 1..=h.args.len().min(5) {
            self.reached(s, s.reg(r), &mut seen, &mut roots);
        }
        self.tell(s, &roots);
    }

    /// All that a value is, or leads to.
    fn reached(
        &mut self,
        s: &State,
        value: Value,
        seen: &mut BTreeSet<Region>,
        roots: &mut Vec<ExprId>,
    ) {
        let region = match value {
            Value::Unset | Value::Object(_) => return,
            Value::Num(e) | Value::Inner(_, e) => {
                roots.push(e);
                return;
            }
            Value::Ptr(region, offset) => {
                roots.push(offset);
                region
            }
        };
        if !seen.insert(region) {
            return;
        }
        match region {
            Region::Context => {}
            Region::Packet => {
                for w in &s.packet {
                    roots.push(w.byte);
                    roots.extend(w.base);
                }
            }
            Region::Stack(frame) => {
                let mine = s.stack.iter().filter(|(k, _)| k.0 == frame);
                let cells: Vec<Cell> = mine.map(|(_, cell)| *cell).collect();
                for cell in cells {
                    match cell {
                        Cell::Byte(e) => roots.push(e),
                        // Text is formatted through pointers, too.
                        Cell::Part(value, _) => self.reached(s, value, seen, roots),
                    }
                }
            }
            Region::Place(at) => {
                let Some(place) = s.places.get(at) else {
                    return;
                };
                roots.extend(place.bytes.values());
                let program = self.program;
                let constant = program
                    .object(place.object)
                    .is_some_and(|o| o.read_only && !o.settable);
                if !place.fresh && !constant {
                    let name = format!("{}.whole", place.stem);
                    roots.push(self.arena.sym(&name, 1, place.origin()));
                }
            }
        }
    }

    /// Notes what a loop starts from whose turns are not followed: numbers in registers, on the stack, in the packet.
    pub(super) fn tell_start(&self, s: &mut State) {
        let mut roots = Vec::new();
        for (_, regs) in &s.frames {
            for value in regs {
                if let Value::Num(e) | Value::Ptr(_, e) | Value::Inner(_, e) = value {
                    roots.push(*e);
                }
            }
        }
        for cell in s.stack.values() {
            if let Cell::Byte(e) | Cell::Part(Value::Num(e) | Value::Ptr(_, e), _) = cell {
                roots.push(*e);
            }
        }
        for w in &s.packet {
            roots.push(w.byte);
            roots.extend(w.base);
        }
        roots.retain(|e| self.depends_on_state(*e));
        self.tell(s, &roots);
    }

    /// Whether an expression is made of what state holds, or of what may be.
    pub(super) fn depends_on_state(&self, e: ExprId) -> bool {
        let mut any = false;
        crate::expr::walk::each_of(
            &self.arena,
            &[e],
            |_| false,
            |e| {
                any |= matches!(self.arena.node(e), crate::expr::Node::Sym(s)
                if matches!(self.arena.symbol(*s).origin, Origin::State(_) | Origin::Turn)
                    && !self.of_packets.contains(s));
            },
        );
        any
    }
}

/// A number of a sequence and what follows it; never 0, which is that of none.
pub(super) fn numbered(sequence: u64, next: u64) -> u64 {
    let mut h = DefaultHasher::new();
    (sequence, next).hash(&mut h);
    h.finish().max(1)
}

/// Observations of two paths, for a path that stands for both; with what decides between them where they differ.
pub(super) fn joined(s: &mut State, other: &State, between: &[ExprId]) {
    if s.tells != other.tells || s.random != other.random {
        s.told.extend(between);
        for (mine, other) in [(&mut s.tells, other.tells), (&mut s.random, other.random)] {
            if *mine != other {
                *mine = numbered(*mine, other);
            }
        }
    }
    s.told.extend(&other.told);
}
