//! Functions that are one to one: two of their values are equal if and only if what they were given is. A product by an
//! odd number, a sum with a number, and exclusive ors of shifted words are such, and what programs call a hash of one
//! word is mostly made of them. To find that out by itself a solver would have to multiply backwards.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::rc::Rc;

use millrace_model::expr::{Arena, Bin, ExprId, Node};

use super::rows::Rows;
use super::sums::parts;

/// Words that are kept taken apart.
const KEPT: usize = 256;
/// More steps than any such function has.
const STEPS: usize = 64;

/// What words are made of, of one arena: each formula is compared with all others.
#[derive(Default)]
pub(super) struct Taken {
    apart: HashMap<Vec<ExprId>, Option<Rc<Linear>>>,
}

impl Taken {
    fn apart(&mut self, arena: &Arena, words: &[ExprId]) -> Option<Rc<Linear>> {
        if let Some(known) = self.apart.get(words) {
            return known.clone();
        }
        let made = Linear::of(arena, words).map(Rc::new);
        if self.apart.len() >= KEPT {
            self.apart.clear();
        }
        self.apart.insert(words.to_vec(), made.clone());
        made
    }
}

/// Words of two packets that are equal if and only if these are, closer to what they are computed from.
pub(super) fn peeled(
    arena: &Arena,
    taken: &mut Taken,
    a: &[ExprId],
    b: &[ExprId],
) -> (Vec<ExprId>, Vec<ExprId>) {
    let mut now = (a.to_vec(), b.to_vec());
    for _ in 0..STEPS {
        match step(arena, taken, &now.0, &now.1) {
            Some(next) if next != now => now = next,
            _ => break,
        }
    }
    now
}

fn step(
    arena: &Arena,
    taken: &mut Taken,
    a: &[ExprId],
    b: &[ExprId],
) -> Option<(Vec<ExprId>, Vec<ExprId>)> {
    let (x, y) = (taken.apart(arena, a)?, taken.apart(arena, b)?);
    let width = |e: &ExprId| arena.width(*e);
    let widths = |of: &[ExprId]| of.iter().map(width).collect::<Vec<u32>>();
    if x.rows != y.rows || widths(&x.parts) != widths(&y.parts) {
        return None;
    }
    let mut rows = Rows::new();
    let fresh = x.rows.iter().filter(|r| rows.insert(r.0.clone())).count();
    let bits: u32 = widths(&x.parts).iter().sum();
    if fresh != bits as usize {
        return None;
    }
    let both = x.parts.iter().zip(&y.parts);
    let inner = both.map(|(p, q)| match (given(arena, *p), given(arena, *q)) {
        (Some((p, f)), Some((q, g))) if f == g => (p, q),
        _ => (*p, *q),
    });
    Some(inner.unzip())
}

/// Words as exclusive ors of bits of what they are made of.
#[derive(Debug)]
struct Linear {
    /// that, in the order in which they have it
    parts: Vec<ExprId>,
    /// each bit: which bits of which part, and whether 1 is added
    rows: Vec<(BTreeSet<(usize, u32)>, bool)>,
}

impl Linear {
    fn of(arena: &Arena, words: &[ExprId]) -> Option<Self> {
        let mut number: BTreeMap<ExprId, usize> = BTreeMap::new();
        let mut out = Self {
            parts: Vec::new(),
            rows: Vec::new(),
        };
        for bit in parts(arena, words).into_iter().flatten() {
            let bit = bit?;
            let mut row = BTreeSet::new();
            for &(part, at) in bit.bits.iter() {
                let part = ExprId(u32::try_from(part).ok()?);
                let place = *number.entry(part).or_insert_with(|| {
                    out.parts.push(part);
                    out.parts.len() - 1
                });
                row.insert((place, at));
            }
            out.rows.push((row, bit.odd));
        }
        Some(out)
    }
}

/// Argument and identity of an injective function.
fn given(arena: &Arena, e: ExprId) -> Option<(ExprId, (Bin, u64))> {
    let Node::Bin(op, x, c) = *arena.node(e) else {
        return None;
    };
    let c = arena.constant(c)?;
    match op {
        Bin::Mul if c & 1 == 1 => Some((x, (op, c))),
        Bin::Add => Some((x, (op, c))),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Four bytes from a place on, as 64 bits.
    fn word(arena: &mut Arena, from: u64) -> (ExprId, Vec<ExprId>) {
        let bytes: Vec<ExprId> = (from..from + 4)
            .map(|at| {
                let at = arena.number(at, 64);
                arena.byte(at)
            })
            .collect();
        let word = arena.concat(&bytes);
        (arena.resize(word, 64), bytes)
    }

    fn mixed(arena: &mut Arena, mut z: ExprId, factor: u64) -> ExprId {
        for shift in [30, 27, 31] {
            let by = arena.number(shift, 64);
            let shifted = arena.binary(Bin::Shr, z, by);
            z = arena.binary(Bin::Xor, z, shifted);
            let more = arena.number(77, 64);
            z = arena.binary(Bin::Add, z, more);
            let factor = arena.number(factor, 64);
            z = arena.binary(Bin::Mul, z, factor);
        }
        z
    }

    #[test]
    fn what_was_mixed_is_taken_apart() {
        let mut arena = Arena::new();
        let ((x, own), (y, other)) = (word(&mut arena, 0), word(&mut arena, 100));
        let odd = 0xbf58_476d_1ce4_e5b9;
        let (a, b) = (mixed(&mut arena, x, odd), mixed(&mut arena, y, odd));
        let (mut p, mut q) = peeled(&arena, &mut Taken::default(), &[a], &[b]);
        p.sort_unstable();
        q.sort_unstable();
        assert_eq!((p, q), (own, other));
        // Of an even factor nobody knows, nor of two that differ.
        let even = (mixed(&mut arena, x, odd - 1), mixed(&mut arena, y, odd - 1));
        let (p, _) = peeled(&arena, &mut Taken::default(), &[even.0], &[even.1]);
        assert!(p.iter().all(|e| arena.width(*e) == 64));
        let third = mixed(&mut arena, y, odd + 2);
        assert_eq!(
            peeled(&arena, &mut Taken::default(), &[a], &[third])
                .0
                .len(),
            1
        );
        // Half of the result is not one to one.
        let half = [a, b].map(|e| arena.extract(e, 0, 32));
        assert_eq!(
            peeled(&arena, &mut Taken::default(), &half[..1], &half[1..]).0,
            half[..1]
        );
    }
}
