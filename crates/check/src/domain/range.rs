//! Unsigned and signed bounds of a number of 32 or 64 bits, and what arithmetic does to them.
//!
//! Derivations: each bound is computed in 128 bits, where nothing wraps, and kept if both ends fall
//! into the same period of the width; otherwise the result may be anywhere.

use millrace_object::insn::Width;

use crate::planted::{self, Planted};

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
        if planted::is(Planted::SumUnwrapped) {
            let top = Range::full(width).umax;
            let most = self.umax.saturating_add(b.umax).min(top);
            return Range::of_unsigned(self.umin.saturating_add(b.umin).min(most), most, width);
        }
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
        let most = self.umax / b.umin.max(1);
        match (b.umin, b.umax) {
            (_, 0) => Range::constant(0, width),
            (0, _) => Range::of_unsigned(0, most, width),
            _ => Range::of_unsigned(self.umin / b.umax, most, width),
        }
    }

    /// `self % b`, unsigned; by zero leaves `self`
    #[must_use]
    pub fn modulo(self, b: Range, width: Width) -> Range {
        let by_zero = b.umin == 0 && !(planted::is(Planted::RemainderByZero) && b.umax > 0);
        if b.umax == 0 || self.umax < b.umin {
            self
        } else if by_zero {
            Range::of_unsigned(0, self.umax, width)
        } else {
            Range::of_unsigned(0, self.umax.min(b.umax - 1), width)
        }
    }

    /// Known signed bounds only.
    fn of_signed(lo: i64, hi: i64, width: Width) -> Self {
        Range {
            smin: lo,
            smax: hi,
            ..Range::full(width)
        }
    }

    /// `self / b`, signed, towards zero; by zero gives 0, the minimum by -1 the minimum
    #[must_use]
    pub fn signed_div(self, b: Range, width: Width) -> Range {
        let full = Range::full(width);
        if (self.smin, self.smax) == (full.smin, full.smin) && (b.smin, b.smax) == (-1, -1) {
            return self;
        }
        // With divisors of one sign the quotient grows or falls with each operand, so that its bounds are at
        // corners.
        let below = (b.smin < 0).then_some((b.smin, b.smax.min(-1)));
        let above = (b.smax > 0).then_some((b.smin.max(1), b.smax));
        let (mut lo, mut hi) = (i128::MAX, i128::MIN);
        let mut include = |quotient: i128| {
            lo = lo.min(quotient);
            hi = hi.max(quotient);
        };
        if b.smin <= 0 && b.smax >= 0 {
            include(0);
        }
        for (least, most) in below.into_iter().chain(above) {
            for divisor in [least, most] {
                include(i128::from(self.smin) / i128::from(divisor));
                include(i128::from(self.smax) / i128::from(divisor));
            }
        }
        // Only the minimum by -1 is outside.
        match (i64::try_from(lo), i64::try_from(hi)) {
            (Ok(lo), Ok(hi)) if hi <= full.smax => Range::of_signed(lo, hi, width),
            _ => full,
        }
    }

    /// `self % b`, signed, with the sign of `self`; by zero leaves `self`, the minimum by -1 gives 0
    #[must_use]
    pub fn signed_mod(self, b: Range, width: Width) -> Range {
        let distance = |x: i64| x.unsigned_abs();
        let farthest = distance(b.smin).max(distance(b.smax));
        let with_zero = b.smin <= 0 && b.smax >= 0;
        let nearest = match (with_zero, b.smin > 0) {
            (true, _) => 0,
            (false, true) => distance(b.smin),
            (false, false) => distance(b.smax),
        };
        let smaller = distance(self.smin) < nearest && distance(self.smax) < nearest;
        if farthest == 0 || smaller {
            return self;
        }
        // The remainder is nearer to zero than the divisor and no farther than the dividend, which is left as it
        // is if the divisor may be zero.
        let most = i64::try_from(farthest - 1).unwrap_or(i64::MAX);
        let most = if with_zero { i64::MAX } else { most };
        let lo = if with_zero {
            self.smin
        } else {
            self.smin.max(-most)
        };
        Range::of_signed(lo.min(0), self.smax.min(most).max(0), width)
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
