//! What is known before one step: values of registers and stack slots, and which variables hold which bytes of the packet.

use std::collections::BTreeMap;

use millrace_check::facts::{FrameId, StepId};
use millrace_object::insn::{AluOp, Size, Width};

use super::value::{Id, Term, Terms, Value};

/// Most bytes of a packet that are known at a time, and most slots: above this nothing new is noted.
const MOST: usize = 1024;

/// A variable that holds bytes of the packet, by its number.
pub type Variable = u32;

/// A byte of a packet: the term of its address, and the distance from there.
pub type Place = (Id, u64);

/// A part of a frame's stack: first byte, bytes, and whether an address in the packet lies there in 4 bytes.
type Slot = (FrameId, i32, u32, bool);

/// The state.
#[derive(Clone)]
pub struct State {
    /// the step since which registers that are not noted hold what they held then
    origin: StepId,
    /// the step since which the packet and its context have been in the same place
    pub placed: StepId,
    registers: BTreeMap<(FrameId, u8), Value>,
    slots: BTreeMap<Slot, Value>,
    /// by byte: the variable and which of its bytes, 0 the lowest
    bytes: BTreeMap<Place, (Variable, u8)>,
    /// the last value of each variable
    held: BTreeMap<Variable, Value>,
    /// the least numbers that values can be, by branches that were taken
    least: BTreeMap<Value, u64>,
}

/// A run of a load's bytes that one variable holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Run {
    /// the variable
    pub variable: Variable,
    /// its first byte of them
    pub from: u8,
    /// where that is among the loaded bytes
    pub to: u8,
    /// how many
    pub bytes: u8,
}

impl State {
    /// Nothing is known before this step.
    pub fn unknown(at: StepId) -> Self {
        Self {
            origin: at,
            placed: at,
            registers: BTreeMap::new(),
            slots: BTreeMap::new(),
            bytes: BTreeMap::new(),
            held: BTreeMap::new(),
            least: BTreeMap::new(),
        }
    }

    /// What all of these have in common, where their paths meet before a step.
    pub fn joined(at: StepId, mut all: Vec<State>) -> Self {
        let Some(mut first) = all.pop() else {
            return Self::unknown(at);
        };
        if all.is_empty() {
            return first;
        }
        first.origin = at;
        for other in &all {
            if other.placed != first.placed {
                first.placed = at;
            }
            first
                .registers
                .retain(|k, v| other.registers.get(k) == Some(v));
            first.slots.retain(|k, v| other.slots.get(k) == Some(v));
            first.bytes.retain(|k, v| other.bytes.get(k) == Some(v));
            first.held.retain(|k, v| other.held.get(k) == Some(v));
            first.least.retain(|k, v| match other.least.get(k) {
                Some(least) => {
                    *v = (*v).min(*least);
                    true
                }
                None => false,
            });
        }
        first
    }

    /// The value of a register.
    pub fn register(&mut self, terms: &mut Terms, frame: FrameId, reg: u8) -> Value {
        let entry = Term::Entry(self.origin, frame, reg);
        let value = self.registers.entry((frame, reg));
        *value.or_insert_with(|| terms.value(entry))
    }

    /// A register gets a value.
    pub fn set(&mut self, frame: FrameId, reg: u8, value: Value) {
        self.registers.insert((frame, reg), value);
    }

    /// The value in a part of the stack, if it was stored as that.
    pub fn slot(&self, slot: (FrameId, i32, u32, bool)) -> Option<Value> {
        self.slots.get(&slot).copied()
    }

    /// These bytes of the stack are overwritten.
    pub fn overwrite(&mut self, frame: FrameId, from: i32, to: i32) {
        self.slots.retain(|(of, start, bytes, _), _| {
            let end = start.saturating_add(*bytes as i32);
            *of != frame || end <= from || to <= *start
        });
    }

    /// Any byte of any stack may be overwritten.
    pub fn overwrite_stacks(&mut self) {
        self.slots.clear();
    }

    /// A value is stored as a part of the stack.
    pub fn keep(&mut self, slot: (FrameId, i32, u32, bool), value: Value) {
        self.overwrite(slot.0, slot.1, slot.1.saturating_add(slot.2 as i32));
        if self.slots.len() < MOST {
            self.slots.insert(slot, value);
        }
    }

    /// Nothing is known any more of a frame that is left.
    pub fn leave(&mut self, frame: FrameId) {
        self.registers.retain(|(of, _), _| *of != frame);
        self.slots.retain(|(of, ..), _| *of != frame);
    }

    /// The runs that make up a load, lowest byte first; none where a byte is not known.
    pub fn load(&self, at: Value, size: Size) -> Option<Vec<Run>> {
        let mut runs: Vec<Run> = Vec::new();
        for n in 0..size.bytes() {
            let place = (at.term, at.plus.wrapping_add(u64::from(n)));
            let (variable, byte) = *self.bytes.get(&place)?;
            match runs.last_mut() {
                Some(run) if run.variable == variable && run.from + run.bytes == byte => {
                    run.bytes += 1;
                }
                _ => runs.push(Run {
                    variable,
                    from: byte,
                    to: n as u8,
                    bytes: 1,
                }),
            }
        }
        Some(runs)
    }

    /// A variable holds these bytes from here on, as this number.
    pub fn hold(&mut self, at: Value, size: Size, variable: Variable, value: Value) {
        // Bytes that it held as another number are its own ones alone.
        self.bytes.retain(|_, (of, _)| *of != variable);
        if self.bytes.len() >= MOST {
            return;
        }
        for n in 0..size.bytes() {
            let place = (at.term, at.plus.wrapping_add(u64::from(n)));
            self.bytes.insert(place, (variable, n as u8));
        }
        self.held.insert(variable, value);
    }

    /// The number that a variable holds.
    pub fn held(&self, variable: Variable) -> Option<Value> {
        self.held.get(&variable).copied()
    }

    /// A value is at least this on the way that was taken.
    pub fn at_least(&mut self, value: Value, least: u64) {
        if self.least.len() < MOST {
            let known = self.least.entry(value).or_default();
            *known = least.max(*known);
        }
    }

    /// These bytes of the packet are overwritten. Addresses of different terms may be the same place, unless they are so far apart from a common one.
    pub fn written(&mut self, terms: &Terms, at: Value, size: Size) {
        let bytes = u64::from(size.bytes());
        let written = self.span(terms, at);
        let mut apart: BTreeMap<Id, Option<Span>> = BTreeMap::new();
        let mut bytes_left = std::mem::take(&mut self.bytes);
        bytes_left.retain(|(term, plus), _| {
            if *term == at.term {
                return plus.wrapping_sub(at.plus) >= bytes;
            }
            let term = Value {
                term: *term,
                plus: 0,
            };
            let span = apart.entry(term.term);
            let span = *span.or_insert_with(|| self.span(terms, term));
            let other = span.and_then(|span| span.moved(*plus));
            written
                .zip(other)
                .is_some_and(|(a, b)| a.root == b.root && (a.to + bytes <= b.from || b.to < a.from))
        });
        self.bytes = bytes_left;
    }

    /// Where an address lies, if it is a sum of another one and small numbers.
    fn span(&self, terms: &Terms, at: Value) -> Option<Span> {
        let mut root = at;
        let (mut from, mut to) = (0_u64, 0_u64);
        for _ in 0..MOST_SUMMANDS {
            let term = Value { plus: 0, ..root };
            let Some(Term::Alu(AluOp::Add, Width::W64, left, right)) = terms.term(term) else {
                break;
            };
            // The address is the one of which the greatest value is not known.
            let (base, by) = match terms.facts(*right).most <= MOST_DISTANCE {
                true => (*left, *right),
                false => (*right, *left),
            };
            let most = terms.facts(by).most;
            if most > MOST_DISTANCE {
                break;
            }
            from += self.least.get(&by).copied().unwrap_or(0).min(most);
            to += most;
            root = Value {
                plus: base.plus.wrapping_add(root.plus),
                ..base
            };
        }
        let span = Span {
            root: root.term,
            from,
            to,
        };
        span.moved(root.plus)
    }

    /// Any byte of the packet may be overwritten.
    pub fn written_anywhere(&mut self) {
        self.bytes.clear();
    }
}

/// Most numbers that are added to an address one by one.
const MOST_SUMMANDS: usize = 8;
/// A packet's bytes are closer together than this.
pub const MOST_DISTANCE: u64 = 1 << 20;

/// An address: how far it is from another one, at least and at most.
#[derive(Clone, Copy)]
struct Span {
    root: Id,
    from: u64,
    to: u64,
}

impl Span {
    /// So much further; none where that is not near.
    fn moved(self, by: u64) -> Option<Self> {
        (by <= MOST_DISTANCE).then(|| Self {
            from: self.from + by,
            to: self.to + by,
            ..self
        })
    }
}
