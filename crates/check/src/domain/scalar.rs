//! Numbers: known bits, and bounds of all 64 bits and of the lower 32, each sharpening the others.

use std::fmt;

use millrace_object::insn::Width;

use super::range::Range;
use super::tnum::{Tnum, low_mask};

/// A set of 64-bit numbers: those that all three descriptions allow. Never empty.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Scalar {
    /// known bits
    pub bits: Tnum,
    /// bounds of the number
    pub r64: Range,
    /// bounds of its lower half
    pub r32: Range,
}

impl Scalar {
    /// Any number.
    #[must_use]
    pub fn unknown() -> Self {
        Scalar {
            bits: Tnum::UNKNOWN,
            r64: Range::full(Width::W64),
            r32: Range::full(Width::W32),
        }
    }

    /// Exactly `x`.
    #[must_use]
    pub fn constant(x: u64) -> Self {
        Scalar {
            bits: Tnum::constant(x),
            r64: Range::constant(x, Width::W64),
            r32: Range::constant(x & low_mask(32), Width::W32),
        }
    }

    /// Any number of so many low bits, the others 0.
    #[must_use]
    pub fn of_bits(bits: u32) -> Self {
        Scalar::from_bits(Tnum::UNKNOWN.low(bits))
    }

    /// The numbers with these bits.
    #[must_use]
    pub fn from_bits(bits: Tnum) -> Self {
        Scalar {
            bits,
            ..Scalar::unknown()
        }
        .deduce()
        .unwrap_or_else(Scalar::unknown)
    }

    /// The numbers within these signed bounds.
    #[must_use]
    pub fn within(smin: i64, smax: i64) -> Self {
        let mut s = Scalar::unknown();
        s.r64.smin = smin;
        s.r64.smax = smax;
        s.deduce().unwrap_or_else(Scalar::unknown)
    }

    /// The numbers within these unsigned bounds.
    #[must_use]
    pub fn between(umin: u64, umax: u64) -> Self {
        let mut s = Scalar::unknown();
        s.r64.umin = umin;
        s.r64.umax = umax;
        s.deduce().unwrap_or_else(Scalar::unknown)
    }

    /// The number, if it is only one.
    #[must_use]
    pub fn as_constant(&self) -> Option<u64> {
        self.bits.is_constant().then_some(self.bits.value)
    }

    /// Whether `x` is one of the numbers.
    #[must_use]
    pub fn contains(&self, x: u64) -> bool {
        let within =
            |r: &Range, u: u64, s: i64| r.umin <= u && u <= r.umax && r.smin <= s && s <= r.smax;
        let low = x & low_mask(32);
        self.bits.contains(x)
            && within(&self.r64, x, x as i64)
            && within(&self.r32, low, i64::from(low as u32 as i32))
    }

    /// Whether every number of `other` is one of these.
    #[must_use]
    pub fn includes(&self, other: &Scalar) -> bool {
        self.r64.includes(other.r64)
            && self.r32.includes(other.r32)
            && self.bits.includes(other.bits)
    }

    /// Whether nothing is known.
    #[must_use]
    pub fn is_unknown(&self) -> bool {
        *self == Scalar::unknown()
    }

    /// The smallest description that holds both.
    #[must_use]
    pub fn join(&self, other: &Scalar) -> Scalar {
        Scalar {
            bits: self.bits.join(other.bits),
            r64: self.r64.join(other.r64),
            r32: self.r32.join(other.r32),
        }
    }

    /// The numbers in both; none if there is none.
    #[must_use]
    pub fn intersect(&self, other: &Scalar) -> Option<Scalar> {
        Scalar {
            bits: self.bits.intersect(other.bits)?,
            r64: self.r64.intersect(other.r64),
            r32: self.r32.intersect(other.r32),
        }
        .deduce()
    }

    /// The bounds at a width.
    #[must_use]
    pub fn range(&self, width: Width) -> Range {
        match width {
            Width::W32 => self.r32,
            Width::W64 => self.r64,
        }
    }

    /// The same, with its lower half as a number of its own (upper half 0).
    #[must_use]
    pub fn low32(&self) -> Scalar {
        let mut s = Scalar {
            bits: self.bits.low(32),
            r64: Range::full(Width::W64),
            r32: self.r32,
        };
        s.r64.umin = self.r32.umin;
        s.r64.umax = self.r32.umax;
        s.deduce().unwrap_or_else(Scalar::unknown)
    }

    /// The numbers whose lower half is one of `half`'s; none if there is none.
    #[must_use]
    pub fn with_low32(&self, half: &Scalar) -> Option<Scalar> {
        let low = half.bits.low(32);
        let bits = self.bits.intersect(Tnum {
            value: low.value,
            mask: low.mask | !low_mask(32),
        })?;
        Scalar {
            bits,
            r64: self.r64,
            r32: self.r32.intersect(half.r32),
        }
        .deduce()
    }

    /// Lets known bits and bounds sharpen each other; none if no number is left.
    #[must_use]
    pub fn deduce(mut self) -> Option<Scalar> {
        // Each round only shrinks; two rounds reach the fixed point in practice, and stopping early
        // is sound.
        for _ in 0..3 {
            let before = self;
            self.bounds_from_bits();
            self.r64.cross(Width::W64);
            self.r32.cross(Width::W32);
            self.halves();
            self.r64.cross(Width::W64);
            self.r32.cross(Width::W32);
            if self.r64.is_empty() || self.r32.is_empty() {
                return None;
            }
            self.bits = self
                .bits
                .intersect(Tnum::range(self.r64.umin, self.r64.umax))?;
            let low = Tnum::range(self.r32.umin, self.r32.umax);
            let upper = !low_mask(32);
            self.bits = self.bits.intersect(Tnum {
                value: low.value,
                mask: low.mask | upper,
            })?;
            if self == before {
                break;
            }
        }
        Some(self)
    }

    fn bounds_from_bits(&mut self) {
        let b = self.bits;
        self.r64.umin = self.r64.umin.max(b.value);
        self.r64.umax = self.r64.umax.min(b.value | b.mask);
        // The lowest bits, as far as they are known, are the same for all: bounds that are not such
        // numbers can be moved to the next that is.
        let known = b.mask.trailing_zeros();
        if known > 0 && known < 64 {
            let period = low_mask(known);
            let low = b.value & period;
            if let Some(up) =
                (self.r64.umin & !period | low).checked_add(if self.r64.umin & period > low {
                    period + 1
                } else {
                    0
                })
            {
                self.r64.umin = up;
            }
            let down = self.r64.umax & !period | low;
            if self.r64.umax & period >= low {
                self.r64.umax = down;
            } else if let Some(down) = down.checked_sub(period + 1) {
                self.r64.umax = down;
            }
        }
        let sign = 1u64 << 63;
        // Signed: the smallest sets an unknown sign bit and no other, the largest all others.
        self.r64.smin = self.r64.smin.max((b.value | (b.mask & sign)) as i64);
        self.r64.smax = self.r64.smax.min((b.value | (b.mask & !sign)) as i64);
        let l = b.low(32);
        self.r32.umin = self.r32.umin.max(l.value);
        self.r32.umax = self.r32.umax.min(l.value | l.mask);
        let sign = 1u64 << 31;
        self.r32.smin = self
            .r32
            .smin
            .max(i64::from((l.value | (l.mask & sign)) as u32 as i32));
        self.r32.smax = self
            .r32
            .smax
            .min(i64::from((l.value | (l.mask & !sign)) as u32 as i32));
    }

    fn halves(&mut self) {
        let low = low_mask(32);
        if self.r64.umin >> 32 == self.r64.umax >> 32 {
            // One upper half for all: the lower halves are ordered as the whole.
            self.r32.umin = self.r32.umin.max(self.r64.umin & low);
            self.r32.umax = self.r32.umax.min(self.r64.umax & low);
            let upper = self.r64.umin & !low;
            self.r64.umin = self.r64.umin.max(upper | self.r32.umin);
            self.r64.umax = self.r64.umax.min(upper | self.r32.umax);
        }
        if self.r64.smin >= i64::from(i32::MIN) && self.r64.smax <= i64::from(i32::MAX) {
            // The number is the sign extension of its lower half.
            self.r32.smin = self.r32.smin.max(self.r64.smin);
            self.r32.smax = self.r32.smax.min(self.r64.smax);
            self.r64.smin = self.r64.smin.max(self.r32.smin);
            self.r64.smax = self.r64.smax.min(self.r32.smax);
        }
    }
}

impl fmt::Display for Scalar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(c) = self.as_constant() {
            return if (c as i64) < 0 && (c as i64) > -65536 {
                write!(f, "{}", c as i64)
            } else {
                write!(f, "{c}")
            };
        }
        if self.is_unknown() {
            return write!(f, "any number");
        }
        if self.r64.smin < 0 {
            write!(f, "{} to {}", bound(self.r64.smin), bound(self.r64.smax))
        } else {
            write!(f, "{} to {}", self.r64.umin, self.r64.umax)
        }
    }
}

fn bound(x: i64) -> String {
    match x {
        i64::MIN => "-2^63".to_owned(),
        i64::MAX => "2^63-1".to_owned(),
        x => x.to_string(),
    }
}
