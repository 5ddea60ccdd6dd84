//! Fingerprints of residues: equal ones are found among many without comparing each with all.
//!
//! A residue is a polynomial over conditions, which are 0 or 1, and atoms. Here it is evaluated at 64 points at once, one a bit: numbers that
//! a hash gives stand for atoms and for what is compared with a limit, and bits of it for all other conditions; what a condition is
//! made of counts as [`Arena::same_residue`] takes it apart. Residues that it finds to be one are one polynomial, so that
//! their values agree at each point: a different fingerprint is a different residue, an equal one has to be compared.

use std::collections::HashMap;

use super::super::{Arena, Bin, ExprId, Node, Rel, mask};
use super::residue::{Condition, M, Residue};

/// How many points there are: bits of a word.
const POINTS: usize = 64;

/// A number without a pattern (splitmix64).
fn hash(n: u64) -> u64 {
    let mut z = n.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Values of conditions that were made of others, a bit a point.
type Known = HashMap<ExprId, u64>;

impl Arena {
    /// The fingerprint of a residue.
    pub(super) fn fingerprint(&self, residue: &Residue) -> u64 {
        let mut sums = [0_u64; POINTS];
        let mut known = Known::new();
        for ((conditions, atom), factor) in residue {
            let conditions = conditions.iter();
            let mut points = conditions.fold(u64::MAX, |points, c| {
                points & self.at_points(&mut known, *c)
            });
            let atom = atom.map_or(1, |e| hash(u64::from(e.0)) % M);
            let value = atom * factor % M;
            while points != 0 {
                if let Some(sum) = sums.get_mut(points.trailing_zeros() as usize) {
                    *sum = (*sum + value) % M;
                }
                points &= points - 1;
            }
        }
        sums.iter().fold(0, |all, sum| hash(all ^ sum))
    }

    /// Where a condition holds.
    fn at_points(&self, known: &mut Known, condition: Condition) -> u64 {
        match condition {
            Condition::Above(e, limit) => self.above(e, limit),
            Condition::Is(e) => self.is_at(known, e),
        }
    }

    /// Where a number is above a limit: numbers of few and of many bits are both likely.
    fn above(&self, e: ExprId, limit: u64) -> u64 {
        let of = |point: usize| {
            let drawn = hash(u64::from(e.0) << 8 | point as u64);
            drawn >> (hash(drawn) % u64::from(self.width(e))) & mask(self.width(e))
        };
        let bits = (0..POINTS).map(|point| u64::from(of(point) > limit) << point);
        bits.fold(0, |all, bit| all | bit)
    }

    /// Where an expression of one bit holds: without recursion, since conditions of merged paths are deep.
    fn is_at(&self, known: &mut Known, e: ExprId) -> u64 {
        let mut todo = vec![e];
        while let Some(e) = todo.last().copied() {
            let before = todo.len();
            let open = self.made_of(e).into_iter().flatten();
            todo.extend(open.filter(|part| !known.contains_key(part)));
            if todo.len() == before {
                let at = |part: ExprId| known.get(&part).copied().unwrap_or_default();
                let points = self.of_parts(e, at);
                known.insert(e, points);
                todo.pop();
            }
        }
        known.get(&e).copied().unwrap_or_default()
    }

    /// The conditions that a condition is made of.
    fn made_of(&self, e: ExprId) -> [Option<ExprId>; 3] {
        match *self.node(e) {
            Node::Bin(Bin::And | Bin::Or, a, b) => [Some(a), Some(b), None],
            Node::Bin(Bin::Xor, a, b) => match (self.constant(a), self.constant(b)) {
                (Some(_), _) => [Some(b), None, None],
                (_, Some(_)) => [Some(a), None, None],
                _ => [None; 3],
            },
            Node::Ite(c, x, y) => [Some(c), Some(x), Some(y)],
            _ => [None; 3],
        }
    }

    /// Where a condition holds, by where those hold that it is made of.
    fn of_parts(&self, e: ExprId, at: impl Fn(ExprId) -> u64) -> u64 {
        let drawn = || hash(u64::from(e.0) | 1 << 40);
        let turned = |e: ExprId, k: u64| at(e) ^ if k == 0 { 0 } else { u64::MAX };
        match *self.node(e) {
            Node::Const(0) => 0,
            Node::Const(_) => u64::MAX,
            Node::Bin(Bin::And, a, b) => at(a) & at(b),
            Node::Bin(Bin::Or, a, b) => at(a) | at(b),
            Node::Bin(Bin::Xor, a, b) => match (self.constant(a), self.constant(b)) {
                (Some(k), _) => turned(b, k),
                (_, Some(k)) => turned(a, k),
                _ => drawn(),
            },
            Node::Ite(c, x, y) => at(c) & at(x) | !at(c) & at(y),
            Node::Cmp(Rel::Less, a, b) => match (self.constant(a), self.constant(b)) {
                (Some(limit), _) => self.above(b, limit),
                (_, Some(0)) => 0,
                (_, Some(limit)) => !self.above(a, limit - 1),
                _ => drawn(),
            },
            _ => drawn(),
        }
    }
}
