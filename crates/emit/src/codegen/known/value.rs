//! Values as terms: two registers that hold the same term hold the same number in every execution.
//!
//! A term is numbered when it is first made (value numbering, Alpern, Wegman, Zadeck, POPL 1988), without joins of different values: where
//! paths meet with different values the result is a term of its own.

use std::collections::HashMap;

use millrace_check::facts::{FrameId, StepId};
use millrace_object::insn::{AluOp, ByteOrder, Size, Width};

use super::fold::{self, Facts};

/// The number of a term.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Id(u32);

/// A term and a constant that is added to it, modulo 2^64.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Value {
    /// the term; [`ZERO`] of a constant
    pub term: Id,
    /// what is added
    pub plus: u64,
}

/// The term that is 0.
pub const ZERO: Id = Id(0);

impl Value {
    /// A constant.
    pub const fn constant(plus: u64) -> Self {
        Self { term: ZERO, plus }
    }

    /// The constant that it is in every execution.
    pub fn as_constant(self) -> Option<u64> {
        (self.term == ZERO).then_some(self.plus)
    }
}

/// What a term is.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Term {
    /// 0
    Zero,
    /// what a register held when control came to a step
    Entry(StepId, FrameId, u8),
    /// what a step left in a register, of which nothing else is known
    Result(StepId, FrameId, u8),
    /// bytes of the context, which stay as they are between two changes of the packet's place: the second number says which
    Context(u32, Size, StepId),
    /// an operation on two values
    Alu(AluOp, Width, Value, Value),
    /// a value of which only the lowest bytes count, with its sign or without
    Narrow(Size, bool, Width, Value),
    /// a value with its lowest bits in another byte order
    Order(ByteOrder, u32, Value),
    /// a value times -1
    Negative(Width, Value),
}

/// All terms of a function.
pub struct Terms {
    known: HashMap<Term, Id>,
    /// by number
    all: Vec<(Term, Facts)>,
}

impl Terms {
    /// None but 0.
    pub fn new() -> Self {
        Self {
            known: HashMap::from([(Term::Zero, ZERO)]),
            all: vec![(Term::Zero, Facts::at_most(0))],
        }
    }

    /// The value of a term.
    pub fn value(&mut self, term: Term) -> Value {
        let next = Id(u32::try_from(self.all.len()).unwrap_or(u32::MAX));
        let id = *self.known.entry(term).or_insert(next);
        if id == next {
            let facts = fold::facts(self, &term);
            self.all.push((term, facts));
        }
        Value { term: id, plus: 0 }
    }

    /// The term of a value, if it is no constant and nothing is added to it.
    pub fn term(&self, value: Value) -> Option<&Term> {
        let (term, _) = self.all.get(value.term.0 as usize)?;
        (value.plus == 0).then_some(term)
    }

    /// Whether a value is what arithmetic gives, perhaps with a constant added.
    pub fn computed(&self, value: Value) -> bool {
        let term = self.all.get(value.term.0 as usize);
        matches!(term, Some((Term::Alu(..), _)))
    }

    /// What is known of a value as a number.
    pub fn facts(&self, value: Value) -> Facts {
        match (self.all.get(value.term.0 as usize), value.plus) {
            (Some((Term::Zero, _)), constant) => Facts::at_most(constant),
            (Some((_, facts)), 0) => *facts,
            (Some((_, facts)), plus) => Facts::at_most(facts.most.saturating_add(plus)),
            (None, _) => Facts::at_most(u64::MAX),
        }
    }

    /// The address of the packet's first byte as it arrived.
    pub fn data(&mut self) -> Value {
        self.value(Term::Context(0, Size::B4, StepId(0)))
    }

    /// The result of an operation.
    pub fn alu(&mut self, op: AluOp, width: Width, left: Value, right: Value) -> Value {
        let width = match fold::same_at_64_bits(op, self.facts(left), self.facts(right), right) {
            true => Width::W64,
            false => width,
        };
        let wide = width == Width::W64;
        let plus = |value: Value, by: u64| Value {
            plus: value.plus.wrapping_add(by),
            ..value
        };
        let most = self.facts(left).most;
        // To the left and back: what compilers write where no mask has room for 32 bits.
        if let (AluOp::Rsh, Width::W64, Some(bits)) = (op, width, right.as_constant())
            && let Some(&Term::Alu(AluOp::Lsh, Width::W64, cut, by)) = self.term(left)
            && let (true, Some(size)) = (by == right, lowest(64 - bits.min(64)))
        {
            return self.narrow(size, false, Width::W64, cut);
        }
        match (op, left.as_constant(), right.as_constant()) {
            (AluOp::Mov, _, _) if wide => right,
            (AluOp::Mov, _, Some(c)) => Value::constant(c & u64::from(u32::MAX)),
            (AluOp::Add, _, Some(c)) if wide => plus(left, c),
            (AluOp::Add, Some(c), _) if wide => plus(right, c),
            (AluOp::Sub, _, Some(c)) if wide => plus(left, c.wrapping_neg()),
            (AluOp::And, _, Some(c)) if wide && most <= c && c & c.wrapping_add(1) == 0 => left,
            (AluOp::Rsh, _, Some(c)) if wide && most >> (c & 63) == 0 => Value::constant(0),
            _ => self.value(Term::Alu(op, width, left, right)),
        }
    }

    /// The lowest bytes of a value, extended.
    pub fn narrow(&mut self, size: Size, signed: bool, width: Width, value: Value) -> Value {
        let mask = u64::MAX >> (64 - 8 * size.bytes());
        let most = self.facts(value).most;
        match (size, signed, value.as_constant()) {
            (Size::B8, _, _) => value,
            (_, false, Some(c)) => Value::constant(c & mask),
            (_, false, _) if most <= mask => value,
            (_, true, _) if most <= mask >> 1 => value,
            _ => self.value(Term::Narrow(size, signed, width, value)),
        }
    }
}

/// The size of so many bits.
fn lowest(bits: u64) -> Option<Size> {
    match bits {
        8 => Some(Size::B1),
        16 => Some(Size::B2),
        32 => Some(Size::B4),
        _ => None,
    }
}
