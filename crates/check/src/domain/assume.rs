//! Refinement of numbers by the branch that compares them.

use millrace_object::insn::{Condition, Width};

use super::range::{Range, bits};
use super::scalar::Scalar;
use super::tnum::{Tnum, low_mask};
use crate::planted::{self, Planted};

/// The condition that holds when this one fails; none for [`Condition::Test`], whose failing has no name.
#[must_use]
pub fn negated(condition: Condition) -> Option<Condition> {
    Some(match condition {
        Condition::Eq => Condition::Ne,
        Condition::Ne => Condition::Eq,
        Condition::Gt => Condition::Le,
        Condition::Ge => Condition::Lt,
        Condition::Lt => Condition::Ge,
        Condition::Le => Condition::Gt,
        Condition::SignedGt => Condition::SignedLe,
        Condition::SignedGe => Condition::SignedLt,
        Condition::SignedLt => Condition::SignedGe,
        Condition::SignedLe => Condition::SignedGt,
        Condition::Test => return None,
    })
}

/// The condition with its sides exchanged.
#[must_use]
pub fn mirrored(condition: Condition) -> Condition {
    match condition {
        Condition::Gt => Condition::Lt,
        Condition::Ge => Condition::Le,
        Condition::Lt => Condition::Gt,
        Condition::Le => Condition::Ge,
        Condition::SignedGt => Condition::SignedLt,
        Condition::SignedGe => Condition::SignedLe,
        Condition::SignedLt => Condition::SignedGt,
        Condition::SignedLe => Condition::SignedGe,
        same => same,
    }
}

/// Both sides, given that `a condition b` holds (or fails, if `holds` is false); none if it cannot.
#[must_use]
pub fn assume(
    condition: Condition,
    width: Width,
    holds: bool,
    a: &Scalar,
    b: &Scalar,
) -> Option<(Scalar, Scalar)> {
    let width = if planted::is(Planted::NarrowTellsWide) {
        Width::W64
    } else {
        width
    };
    if holds {
        return assume_holds(condition, width, a, b);
    }
    match negated(condition) {
        Some(c) => assume_holds(c, width, a, b),
        None => assume_no_common_bit(width, a, b),
    }
}

fn assume_holds(
    condition: Condition,
    width: Width,
    a: &Scalar,
    b: &Scalar,
) -> Option<(Scalar, Scalar)> {
    match condition {
        Condition::Eq => assume_equal(width, a, b),
        Condition::Ne => assume_unequal(width, a, b),
        Condition::Lt => less(width, a, b, 1, false),
        Condition::Le => less(width, a, b, 0, false),
        Condition::Gt => less(width, b, a, 1, false).map(|(b, a)| (a, b)),
        Condition::Ge => less(width, b, a, 0, false).map(|(b, a)| (a, b)),
        Condition::SignedLt => less(width, a, b, 1, true),
        Condition::SignedLe => less(width, a, b, 0, true),
        Condition::SignedGt => less(width, b, a, 1, true).map(|(b, a)| (a, b)),
        Condition::SignedGe => less(width, b, a, 0, true).map(|(b, a)| (a, b)),
        Condition::Test => assume_common_bit(width, a, b),
    }
}

fn range_mut(s: &mut Scalar, width: Width) -> &mut Range {
    match width {
        Width::W32 => &mut s.r32,
        Width::W64 => &mut s.r64,
    }
}

/// `a + gap <= b`
fn less(width: Width, a: &Scalar, b: &Scalar, gap: u64, signed: bool) -> Option<(Scalar, Scalar)> {
    let signed = signed && !planted::is(Planted::SignedAsUnsigned);
    let gap = if planted::is(Planted::AtMostIsLess) {
        1
    } else {
        gap
    };
    let (mut x, mut y) = (*a, *b);
    let (ra, rb) = (range_mut(&mut x, width), range_mut(&mut y, width));
    if signed {
        let gap = gap as i64;
        let (top, bottom) = (rb.smax.checked_sub(gap)?, ra.smin.checked_add(gap)?);
        ra.smax = ra.smax.min(top);
        rb.smin = rb.smin.max(bottom);
    } else {
        let (top, bottom) = (rb.umax.checked_sub(gap)?, ra.umin.checked_add(gap)?);
        ra.umax = ra.umax.min(top);
        rb.umin = rb.umin.max(bottom);
    }
    Some((x.deduce()?, y.deduce()?))
}

fn assume_equal(width: Width, a: &Scalar, b: &Scalar) -> Option<(Scalar, Scalar)> {
    if width == Width::W64 {
        let both = a.intersect(b)?;
        return Some((both, both));
    }
    let r = a.r32.intersect(b.r32);
    let low = a.bits.low(32).intersect(b.bits.low(32))?;
    let upper = !low_mask(32);
    let with = |s: &Scalar| {
        let bits = s.bits.intersect(Tnum {
            value: low.value,
            mask: low.mask | upper,
        })?;
        Scalar {
            bits,
            r64: s.r64,
            r32: r,
        }
        .deduce()
    };
    Some((with(a)?, with(b)?))
}

fn assume_unequal(width: Width, a: &Scalar, b: &Scalar) -> Option<(Scalar, Scalar)> {
    let (x, y) = (*a, *b);
    let x = match constant_at(&y, width) {
        Some(c) => without(x, c, width)?,
        None => x,
    };
    let y = match constant_at(a, width) {
        Some(c) => without(y, c, width)?,
        None => y,
    };
    Some((x, y))
}

fn constant_at(s: &Scalar, width: Width) -> Option<u64> {
    let low = s.bits.low(bits(width));
    low.is_constant().then_some(low.value)
}

/// `s` without `c`: only the ends of an interval can be cut off.
fn without(mut s: Scalar, c: u64, width: Width) -> Option<Scalar> {
    if constant_at(&s, width) == Some(c) {
        return None;
    }
    let signed = super::range::signed(c, width);
    let r = range_mut(&mut s, width);
    if r.umin == c {
        r.umin = c.checked_add(1)?;
    }
    if r.umax == c {
        r.umax = c.checked_sub(1)?;
    }
    if r.smin == signed {
        r.smin = signed.checked_add(1)?;
    }
    if r.smax == signed {
        r.smax = signed.checked_sub(1)?;
    }
    s.deduce()
}

fn assume_common_bit(width: Width, a: &Scalar, b: &Scalar) -> Option<(Scalar, Scalar)> {
    let keep = low_mask(bits(width));
    let possible = (a.bits.value | a.bits.mask) & (b.bits.value | b.bits.mask) & keep;
    if possible == 0 {
        return None;
    }
    let mut x = *a;
    if let Some(c) = constant_at(b, width)
        && c.is_power_of_two()
    {
        x.bits = x.bits.intersect(Tnum { value: c, mask: !c })?;
        x = x.deduce()?;
    }
    Some((x, *b))
}

fn assume_no_common_bit(width: Width, a: &Scalar, b: &Scalar) -> Option<(Scalar, Scalar)> {
    let keep = low_mask(bits(width));
    if a.bits.value & b.bits.value & keep != 0 {
        return None;
    }
    let mut x = *a;
    if let Some(c) = constant_at(b, width) {
        x.bits = x.bits.intersect(Tnum { value: 0, mask: !c })?;
        x = x.deduce()?;
    }
    Some((x, *b))
}
