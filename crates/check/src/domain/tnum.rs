//! Tristate numbers: which bits of a number are known.
//!
//! Operations after Vishwanathan, Shachnai, Narayana and Nagarakatte, "Sound, Precise, and Fast
//! Abstract Interpretation with Tristate Numbers", CGO 2022, sections 3 and 4.

use crate::planted::{self, Planted};

/// Bits known (`mask` 0: as in `value`) and unknown (`mask` 1, and then `value` 0).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Tnum {
    /// the known bits; 0 where unknown
    pub value: u64,
    /// 1 where unknown
    pub mask: u64,
}

impl Tnum {
    /// Nothing known.
    pub const UNKNOWN: Tnum = Tnum {
        value: 0,
        mask: u64::MAX,
    };

    /// Exactly `value`.
    #[must_use]
    pub const fn constant(value: u64) -> Self {
        Tnum { value, mask: 0 }
    }

    fn new(value: u64, mask: u64) -> Self {
        Tnum {
            value: value & !mask,
            mask,
        }
    }

    /// The smallest tristate number that holds all of `min..=max`: their common upper bits.
    #[must_use]
    pub fn range(min: u64, max: u64) -> Self {
        let differing = min ^ max;
        let bits = 64 - differing.leading_zeros();
        let delta = if bits == 64 {
            u64::MAX
        } else {
            (1u64 << bits) - 1
        };
        Tnum::new(min, delta)
    }

    /// Whether it is one number.
    #[must_use]
    pub fn is_constant(self) -> bool {
        self.mask == 0
    }

    /// Whether `x` is one of the numbers.
    #[must_use]
    pub fn contains(self, x: u64) -> bool {
        x & !self.mask == self.value
    }

    /// Whether every number of `other` is one of these.
    #[must_use]
    pub fn includes(self, other: Tnum) -> bool {
        other.mask & !self.mask == 0 && other.value & !self.mask == self.value
    }

    /// The numbers in both; none if there is none.
    #[must_use]
    pub fn intersect(self, other: Tnum) -> Option<Tnum> {
        if (self.value ^ other.value) & !self.mask & !other.mask != 0 {
            return None;
        }
        Some(Tnum::new(self.value | other.value, self.mask & other.mask))
    }

    /// The smallest that holds both.
    #[must_use]
    pub fn join(self, other: Tnum) -> Tnum {
        Tnum::new(
            self.value,
            self.mask | other.mask | (self.value ^ other.value),
        )
    }

    /// `self + other`
    #[must_use]
    pub fn plus(self, other: Tnum) -> Tnum {
        if planted::is(Planted::CarryForgotten) {
            return Tnum::new(self.value.wrapping_add(other.value), self.mask | other.mask);
        }
        let masks = self.mask.wrapping_add(other.mask);
        let values = self.value.wrapping_add(other.value);
        let carries = masks.wrapping_add(values) ^ values;
        Tnum::new(values, carries | self.mask | other.mask)
    }

    /// `self - other`
    #[must_use]
    pub fn minus(self, other: Tnum) -> Tnum {
        let difference = self.value.wrapping_sub(other.value);
        let borrows = difference.wrapping_add(self.mask) ^ difference.wrapping_sub(other.mask);
        Tnum::new(difference, borrows | self.mask | other.mask)
    }

    /// `self & other`
    #[must_use]
    pub fn and(self, other: Tnum) -> Tnum {
        let possible = (self.value | self.mask) & (other.value | other.mask);
        let certain = self.value & other.value;
        Tnum::new(certain, possible & !certain)
    }

    /// `self | other`
    #[must_use]
    pub fn or(self, other: Tnum) -> Tnum {
        let certain = self.value | other.value;
        Tnum::new(certain, (self.mask | other.mask) & !certain)
    }

    /// `self ^ other`
    #[must_use]
    pub fn xor(self, other: Tnum) -> Tnum {
        Tnum::new(self.value ^ other.value, self.mask | other.mask)
    }

    /// `self * other`, by long multiplication of the uncertain parts
    #[must_use]
    pub fn times(self, other: Tnum) -> Tnum {
        let certain = self.value.wrapping_mul(other.value);
        let (mut a, mut b) = (self, other);
        let mut uncertain = Tnum::constant(0);
        while a.value != 0 || a.mask != 0 {
            if a.value & 1 != 0 {
                uncertain = uncertain.plus(Tnum::new(0, b.mask));
            } else if a.mask & 1 != 0 {
                uncertain = uncertain.plus(Tnum::new(0, b.value | b.mask));
            }
            a = a.rsh(1);
            b = b.lsh(1);
        }
        Tnum::constant(certain).plus(uncertain)
    }

    /// `self << by`; `by` below 64
    #[must_use]
    pub fn lsh(self, by: u32) -> Tnum {
        Tnum::new(self.value << by, self.mask << by)
    }

    /// `self >> by`, logical; `by` below 64
    #[must_use]
    pub fn rsh(self, by: u32) -> Tnum {
        Tnum::new(self.value >> by, self.mask >> by)
    }

    /// The lowest `bits`, the others 0.
    #[must_use]
    pub fn low(self, bits: u32) -> Tnum {
        let keep = low_mask(bits);
        Tnum::new(self.value & keep, self.mask & keep)
    }

    /// The lowest `bits`, their top bit copied into all higher ones.
    #[must_use]
    pub fn sign_extend(self, bits: u32) -> Tnum {
        let up = 64 - bits;
        // An unknown sign bit makes every higher bit unknown; a known one is copied.
        let value = (((self.value << up) as i64) >> up) as u64;
        let mask = (((self.mask << up) as i64) >> up) as u64;
        Tnum::new(value, mask)
    }

    /// `self >> by`, arithmetic at 64 bits; `by` below 64
    #[must_use]
    pub fn arsh(self, by: u32) -> Tnum {
        Tnum::new(
            ((self.value as i64) >> by) as u64,
            ((self.mask as i64) >> by) as u64,
        )
    }

    /// The bytes of the lowest `bits` (16, 32, 64) in the other order, the rest 0.
    #[must_use]
    pub fn swap(self, bits: u32) -> Tnum {
        let up = 64 - bits;
        Tnum {
            value: (self.value << up).swap_bytes(),
            mask: (self.mask << up).swap_bytes(),
        }
    }
}

/// A number whose lowest `bits` are 1.
#[must_use]
pub fn low_mask(bits: u32) -> u64 {
    if bits >= 64 {
        u64::MAX
    } else {
        (1u64 << bits) - 1
    }
}
