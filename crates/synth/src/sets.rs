//! Tests of masked bytes as intervals of fields.

use std::cmp::Ordering;

use crate::field::{Base, Var, of_frame, of_upper};

/// Intervals that a test of one field may have.
const MOST: usize = 4096;

/// A field that a test reads: which bits of it count, and the value that they are compared with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Part {
    /// the field
    pub var: Var,
    /// bits of the field
    pub mask: u64,
    /// their value
    pub value: u64,
}

/// The fields of some bytes, from `first` on, that a test with a mask reads; `at` is where the IP header begins. The most
/// significant comes first.
#[must_use]
pub fn parts(base: Base, at: u16, first: u32, mask: &[u8], value: &[u8]) -> Vec<Part> {
    let mut parts: Vec<Part> = Vec::new();
    for (n, (mask, value)) in mask.iter().zip(value).enumerate() {
        for bit in 0..8 {
            let place = (first + n as u32) * 8 + bit;
            let var = match base {
                Base::Frame => of_frame(at, place),
                Base::Upper(at) => of_upper(at, place),
            };
            let Var::Bits(_, start, width) = var else {
                continue;
            };
            let shift = start + u32::from(width) - 1 - place;
            let (mask, value) = (mask >> (7 - bit) & 1, value >> (7 - bit) & 1);
            if parts.last().is_none_or(|p| p.var != var) {
                parts.push(Part {
                    var,
                    mask: 0,
                    value: 0,
                });
            }
            if let Some(part) = parts.last_mut() {
                part.mask |= u64::from(mask) << shift;
                part.value |= u64::from(value) << shift;
            }
        }
    }
    parts.retain(|p| p.mask != 0 || p.value != 0);
    parts
}

/// How a field's masked bits compare with a value: first value of each interval with what holds there. None: there are too
/// many intervals.
#[must_use]
pub fn compared(part: Part) -> Option<Vec<(u64, Ordering)>> {
    let Part { var, mask, value } = part;
    let max = var.most();
    let mut found: Vec<(u64, Ordering)> = Vec::new();
    let mut note = |first: u64, order: Ordering| {
        if found.last().is_none_or(|f| f.1 != order) {
            found.push((first, order));
        }
    };
    if mask == 0 {
        note(0, 0.cmp(&value));
        return Some(found);
    }
    let low = mask.trailing_zeros();
    let width = 64 - max.leading_zeros();
    if mask == max >> low << low {
        // The upper bits: at most three intervals.
        let step = 1_u64 << low;
        let aligned = value & !(step - 1);
        if value == aligned {
            if value > 0 {
                note(0, Ordering::Less);
            }
            note(value, Ordering::Equal);
            if value + (step - 1) < max {
                note(value + step, Ordering::Greater);
            }
        } else {
            note(0, Ordering::Less);
            if aligned + (step - 1) < max {
                note(aligned + step, Ordering::Greater);
            }
        }
        return Some(found);
    }
    if width - low > 16 {
        return scattered(part);
    }
    for block in 0..1_u64 << (width - low) {
        let first = block << low;
        note(first, (first & mask).cmp(&value));
    }
    (found.len() <= MOST).then_some(found)
}

/// Equality under a mask with holes: values of the free bits above the lowest that counts, each an interval.
fn scattered(part: Part) -> Option<Vec<(u64, Ordering)>> {
    let Part { var, mask, value } = part;
    let low = mask.trailing_zeros();
    let free = var.most() >> low << low & !mask;
    if free.count_ones() > 10 {
        return None;
    }
    let mut found = vec![(0, Ordering::Less)];
    let mut extra = 0_u64;
    loop {
        // Less and greater are not told apart: only equality is asked of such a mask.
        let first = value | extra;
        if value & !mask == 0 {
            match found.last_mut() {
                Some(last) if last.0 == first => last.1 = Ordering::Equal,
                _ => found.push((first, Ordering::Equal)),
            }
            let next = first + (1 << low);
            if next <= var.most() {
                found.push((next, Ordering::Less));
            }
        }
        extra = extra.wrapping_sub(free) & free;
        if extra == 0 {
            break;
        }
    }
    (found.len() <= MOST).then_some(found)
}
