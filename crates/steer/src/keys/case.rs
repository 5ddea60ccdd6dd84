//! Pairs of packets that must meet, as linear equations over their header bits.

use std::sync::Arc;

use super::class::ClassId;
use crate::fields::{Field, Kind};

/// One of the two packets of a pair.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Side {
    /// of class [`Constraint::a`]
    A,
    /// of class [`Constraint::b`]
    B,
}

/// Where a bit stands in a packet.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Part {
    /// in a field that NICs can hash, whether this one does or not
    Field(Field),
    /// in something that no NIC hashes (a protocol number, a MAC address, an identifier), by the
    /// caller's number, the same for both sides
    Other(u32),
}

/// A run of bits of a part.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Bits {
    /// the part
    pub part: Part,
    /// the first bit; 0 is the most significant
    pub first: usize,
    /// how many
    pub count: usize,
}

impl Bits {
    /// All bits of a field in packets of a kind; none where the kind does not have it.
    #[must_use]
    pub fn of(kind: Kind, field: Field) -> Self {
        Self {
            part: Part::Field(field),
            first: 0,
            count: field.bits(kind),
        }
    }

    /// All `width` bits of something that no NIC hashes.
    #[must_use]
    pub fn other(number: u32, width: usize) -> Self {
        Self {
            part: Part::Other(number),
            first: 0,
            count: width,
        }
    }

    /// Its first `count` bits, or all when it has fewer.
    #[must_use]
    pub fn prefix(self, count: usize) -> Self {
        Self {
            count: self.count.min(count),
            ..self
        }
    }

    /// Its last `count` bits, or all when it has fewer.
    #[must_use]
    pub fn suffix(self, count: usize) -> Self {
        let count = self.count.min(count);
        Self {
            first: self.first + self.count - count,
            count,
            ..self
        }
    }

    fn bit(self, side: Side, place: usize) -> Bit {
        Bit {
            side,
            part: self.part,
            at: self.first.saturating_add(place),
        }
    }
}

/// One header bit of one packet of a pair.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Bit {
    /// whose
    pub side: Side,
    /// where
    pub part: Part,
    /// 0 is the part's most significant
    pub at: usize,
}

/// The exclusive or of some bits is 1 (`odd`) or 0.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Equation {
    /// the bits; one that stands here twice counts for nothing
    pub bits: Vec<Bit>,
    /// what their exclusive or is
    pub odd: bool,
}

/// Pairs for which every one of these equations holds; without any, all pairs.
///
/// What is not linear over header bits (an inequality, a sum) is left out by the caller: that makes the
/// case larger, which asks more of the keys than is needed and is therefore sound. The loop of
/// [`Witness`](super::Witness) takes back what was asked too much.
#[derive(Clone, PartialEq, Eq, Hash, Default, Debug)]
pub struct Case {
    /// the equations
    pub equations: Vec<Equation>,
}

impl Case {
    /// All pairs.
    #[must_use]
    pub fn all() -> Self {
        Self::default()
    }

    /// And these bits of A's packet equal those of B's, one by one from the first; where one run is
    /// longer its rest is free.
    #[must_use]
    pub fn equal(self, a: Bits, b: Bits) -> Self {
        self.same((Side::A, a), (Side::B, b))
    }

    /// And the same bits of both packets are equal.
    #[must_use]
    pub fn both(self, bits: Bits) -> Self {
        self.equal(bits, bits)
    }

    /// And these two runs are equal, of either packet, or both of one.
    #[must_use]
    pub fn same(mut self, left: (Side, Bits), right: (Side, Bits)) -> Self {
        let count = left.1.count.min(right.1.count).min(MAX_RUN);
        self.equations.extend((0..count).map(|place| Equation {
            bits: vec![left.1.bit(left.0, place), right.1.bit(right.0, place)],
            odd: false,
        }));
        self
    }

    /// And these bits of one packet are the last `bits.count` bits of `value`.
    #[must_use]
    pub fn constant(mut self, side: Side, bits: Bits, value: u128) -> Self {
        let count = bits.count.min(MAX_RUN);
        self.equations.extend((0..count).map(|place| {
            let shift = u32::try_from(bits.count - 1 - place).unwrap_or(u32::MAX);
            Equation {
                bits: vec![bits.bit(side, place)],
                odd: value.checked_shr(shift).unwrap_or(0) & 1 == 1,
            }
        }));
        self
    }

    /// And this equation.
    #[must_use]
    pub fn and(mut self, equation: Equation) -> Self {
        self.equations.push(equation);
        self
    }
}

/// More bits than any part of a header has, so that a wrong width cannot ask for much memory. What a
/// longer run would say is left out, which makes the case larger and is sound.
const MAX_RUN: usize = 1 << 12;

/// Pairs of packets that must reach one core: the first of class `a`, the second of class `b`, for
/// which one of the cases holds.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Constraint {
    /// the class of the first
    pub a: ClassId,
    /// the class of the second; may be the same
    pub b: ClassId,
    /// the pairs; without any case none, and then nothing is asked. Many constraints may have one case in common
    pub cases: Vec<Arc<Case>>,
}

impl Constraint {
    /// Pairs of packets of two classes, or of one, in one case.
    #[must_use]
    pub fn new(a: ClassId, b: ClassId, case: impl Into<Arc<Case>>) -> Self {
        Self {
            a,
            b,
            cases: vec![case.into()],
        }
    }

    /// Or in this case.
    #[must_use]
    pub fn or(mut self, case: impl Into<Arc<Case>>) -> Self {
        self.cases.push(case.into());
        self
    }
}
