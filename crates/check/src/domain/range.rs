//! Unsigned and signed bounds of a number of 32 or 64 bits, and what arithmetic does to them.
//!
//! Derivations: each bound is computed in 128 bits, where nothing wraps, and kept if both ends fall
//! into the same period of the width; otherwise the result may be anywhere.

use millrace_object::insn::Width;

/// Bounds, all inclusive. For 32 bits the unsigned ones are below 2^32 and the signed ones are
/// those of the number read as an `i32`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Range {
    /// smallest, unsigned
    pub umin: u64,
    /// largest, unsigned
    pub umax: u64,
    /// smallest, signed
    pub smin: i64,
    /// largest, signed
    pub smax: i64,
}

/// Number of bits.
#[must_use]
pub fn bits(width: Width) -> u32 {
    match width {
        Width::W32 => 32,
        Width::W64 => 64,
    }
}

/// `x`, a number of that width, read as signed.
#[must_use]
pub fn signed(x: u64, width: Width) -> i64 {
    match width {
        Width::W32 => i64::from(x as u32 as i32),
        Width::W64 => x as i64,
    }
}

/// `x`, a signed number of that width, read as unsigned.
#[must_use]
pub fn unsigned(x: i64, width: Width) -> u64 {
    match width {
        Width::W32 => u64::from(x as i32 as u32),
        Width::W64 => x as u64,
    }
}

impl Range {
    /// Everything.
    #[must_use]
    pub fn full(width: Width) -> Self {
        match width {
            Width::W32 => Range {
                umin: 0,
                umax: u64::from(u32::MAX),
                smin: i64::from(i32::MIN),
                smax: i64::from(i32::MAX),
            },
            Width::W64 => Range {
                umin: 0,
                umax: u64::MAX,
                smin: i64::MIN,
                smax: i64::MAX,
            },
        }
    }

    /// One number.
    #[must_use]
    pub fn constant(x: u64, width: Width) -> Self {
        let s = signed(x, width);
        let u = unsigned(s, width);
        Range {
            umin: u,
            umax: u,
            smin: s,
            smax: s,
        }
    }

    /// Known unsigned bounds only.
    fn of_unsigned(lo: u64, hi: u64, width: Width) -> Self {
        Range {
            umin: lo,
            umax: hi,
            ..Range::full(width)
        }
    }

    /// Whether every number of `other` is one of these.
    #[must_use]
    pub fn includes(self, other: Range) -> bool {
        self.umin <= other.umin
            && self.umax >= other.umax
            && self.smin <= other.smin
            && self.smax >= other.smax
    }

    /// The smallest that holds both.
    #[must_use]
    pub fn join(self, other: Range) -> Range {
        Range {
            umin: self.umin.min(other.umin),
            umax: self.umax.max(other.umax),
            smin: self.smin.min(other.smin),
            smax: self.smax.max(other.smax),
        }
    }

    /// What both allow; may be empty (a lower bound above the upper).
    #[must_use]
    pub fn intersect(self, other: Range) -> Range {
        Range {
            umin: self.umin.max(other.umin),
            umax: self.umax.min(other.umax),
            smin: self.smin.max(other.smin),
            smax: self.smax.min(other.smax),
        }
    }

    /// Whether there is no such number.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.umin > self.umax || self.smin > self.smax
    }

    /// Lets each pair of bounds sharpen the other, where all numbers have the same sign bit and the
    /// two orders therefore agree.
    pub fn cross(&mut self, width: Width) {
        if self.smin >= 0 || self.smax < 0 {
            self.umin = self.umin.max(unsigned(self.smin, width));
            self.umax = self.umax.min(unsigned(self.smax, width));
        }
        if signed(self.umin, width) <= signed(self.umax, width) {
            // The unsigned interval does not cross the sign boundary.
            self.smin = self.smin.max(signed(self.umin, width));
            self.smax = self.smax.min(signed(self.umax, width));
        }
    }

    fn fit(ulo: i128, uhi: i128, slo: i128, shi: i128, width: Width) -> Range {
        let full = Range::full(width);
        let period = 1i128 << bits(width);
        let mut r = full;
        if ulo.div_euclid(period) == uhi.div_euclid(period) {
            r.umin = ulo.rem_euclid(period) as u64;
            r.umax = uhi.rem_euclid(period) as u64;
        }
        if slo >= i128::from(full.smin) && shi <= i128::from(full.smax) {
            r.smin = slo as i64;
            r.smax = shi as i64;
        }
        r
    }

    /// `self + b`
    #[must_use]
    pub fn add(self, b: Range, width: Width) -> Range {
        Range::fit(
            i128::from(self.umin) + i128::from(b.umin),
            i128::from(self.umax) + i128::from(b.umax),
            i128::from(self.smin) + i128::from(b.smin),
            i128::from(self.smax) + i128::from(b.smax),
            width,
        )
    }

    /// `self - b`
    #[must_use]
    pub fn sub(self, b: Range, width: Width) -> Range {
        Range::fit(
            i128::from(self.umin) - i128::from(b.umax),
            i128::from(self.umax) - i128::from(b.umin),
            i128::from(self.smin) - i128::from(b.smax),
            i128::from(self.smax) - i128::from(b.smin),
            width,
        )
    }

    /// `self * b`
    #[must_use]
    pub fn mul(self, b: Range, width: Width) -> Range {
        let full = Range::full(width);
        let mut r = full;
        let hi = u128::from(self.umax) * u128::from(b.umax);
        if hi <= u128::from(full.umax) {
            r.umin = self.umin * b.umin;
            r.umax = hi as u64;
        }
        let corners = [
            i128::from(self.smin) * i128::from(b.smin),
            i128::from(self.smin) * i128::from(b.smax),
            i128::from(self.smax) * i128::from(b.smin),
            i128::from(self.smax) * i128::from(b.smax),
        ];
        let lo = corners.iter().copied().fold(i128::MAX, i128::min);
        let hi = corners.iter().copied().fold(i128::MIN, i128::max);
        if lo >= i128::from(full.smin) && hi <= i128::from(full.smax) {
            r.smin = lo as i64;
            r.smax = hi as i64;
        }
        r
    }

    /// `self & b`: never above either
    #[must_use]
    pub fn and(self, b: Range, width: Width) -> Range {
        Range::of_unsigned(0, self.umax.min(b.umax), width)
    }

    /// `self | b`: never below either
    #[must_use]
    pub fn or(self, b: Range, width: Width) -> Range {
        Range::of_unsigned(self.umin.max(b.umin), Range::full(width).umax, width)
    }

    /// `self / b`, unsigned; by zero gives 0
    #[must_use]
    pub fn div(self, b: Range, width: Width) -> Range {
        if b.umin == 0 {
            return Range::of_unsigned(0, self.umax, width);
        }
        Range::of_unsigned(self.umin / b.umax, self.umax / b.umin, width)
    }

    /// `self % b`, unsigned; by zero leaves `self`
    #[must_use]
    pub fn modulo(self, b: Range, width: Width) -> Range {
        if b.umin == 0 {
            Range::of_unsigned(0, self.umax, width)
        } else if self.umax < b.umin {
            self
        } else {
            Range::of_unsigned(0, self.umax.min(b.umax - 1), width)
        }
    }

    /// `self / b`, signed; precise for positive divisors
    #[must_use]
    pub fn signed_div(self, b: Range, width: Width) -> Range {
        if b.smin < 1 {
            return Range::full(width);
        }
        let corners = [
            self.smin / b.smin,
            self.smin / b.smax,
            self.smax / b.smin,
            self.smax / b.smax,
        ];
        Range {
            smin: corners.iter().copied().fold(i64::MAX, i64::min),
            smax: corners.iter().copied().fold(i64::MIN, i64::max),
            ..Range::full(width)
        }
    }

    /// `self % b`, signed, with the sign of `self`; precise for positive divisors
    #[must_use]
    pub fn signed_mod(self, b: Range, width: Width) -> Range {
        if b.smin < 1 {
            return Range::full(width);
        }
        let most = b.smax - 1;
        Range {
            smin: if self.smin < 0 {
                self.smin.max(-most)
            } else {
                0
            },
            smax: if self.smax > 0 {
                self.smax.min(most)
            } else {
                0
            },
            ..Range::full(width)
        }
    }

    /// `self << by` for every shift in `least..=most`, both below the width
    #[must_use]
    pub fn lsh(self, least: u32, most: u32, width: Width) -> Range {
        let full = Range::full(width);
        let hi = u128::from(self.umax) << most;
        if hi > u128::from(full.umax) {
            return full;
        }
        Range::of_unsigned(self.umin << least, hi as u64, width)
    }

    /// `self >> by`, logical
    #[must_use]
    pub fn rsh(self, least: u32, most: u32, width: Width) -> Range {
        Range::of_unsigned(self.umin >> most, self.umax >> least, width)
    }

    /// `self >> by`, arithmetic
    #[must_use]
    pub fn arsh(self, least: u32, most: u32, width: Width) -> Range {
        Range {
            smin: if self.smin < 0 {
                self.smin >> least
            } else {
                self.smin >> most
            },
            smax: if self.smax < 0 {
                self.smax >> most
            } else {
                self.smax >> least
            },
            ..Range::full(width)
        }
    }
}
