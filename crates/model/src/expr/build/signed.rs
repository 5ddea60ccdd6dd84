//! Sums that do not wrap as numbers with a sign: sign extensions of them, and their order.
//!
//! Where a packet's borders move, places are sums with negative constants, and differences of 32 bits are extended to 64.
//! As sums of 64 bits they are compared by what is left of their difference, most often a constant or one term.

use super::super::{Arena, Bin, ExprId, Node, Rel, mask};

/// Terms with factors that have a sign.
type Terms = Vec<(ExprId, i128)>;

/// The number of so many bits with its sign.
fn with_sign(c: u64, width: u32) -> i128 {
    let c = i128::from(c & mask(width));
    if c >> (width - 1) & 1 == 1 {
        c - (1 << width)
    } else {
        c
    }
}

/// Whether so many bits with a sign hold all from the one number to the other.
fn holds((low, high): (i128, i128), width: u32) -> bool {
    let most = (1_i128 << (width - 1)) - 1;
    -most - 1 <= low && high <= most
}

/// The difference of two sums.
fn less((mut terms, c): (Terms, i128), (others, d): (Terms, i128)) -> (Terms, i128) {
    for (e, factor) in others {
        match terms.iter_mut().find(|t| t.0 == e) {
            Some(t) => t.1 -= factor,
            None => terms.push((e, -factor)),
        }
    }
    terms.retain(|t| t.1 != 0);
    (terms, c - d)
}

impl Arena {
    /// The integers that a term may be, as which it goes into a sum.
    fn term_range(&self, e: ExprId) -> (i128, i128) {
        if let Node::SignExtend(of) = *self.node(e) {
            let half = 1_i128 << (self.width(of) - 1);
            return (-half, half - 1);
        }
        let (low, high) = self.bounds(e);
        (i128::from(low), i128::from(high))
    }

    /// The least and the greatest integer that a sum may be.
    fn sum_range(&self, terms: &Terms, constant: i128) -> (i128, i128) {
        terms.iter().fold((constant, constant), |sum, (e, factor)| {
            let (low, high) = self.term_range(*e);
            // Factors and terms have at most 64 bits and a sign.
            let (x, y) = (low.saturating_mul(*factor), high.saturating_mul(*factor));
            (
                sum.0.saturating_add(x.min(y)),
                sum.1.saturating_add(x.max(y)),
            )
        })
    }

    /// A sum's terms and its constant as integers; none if it may wrap as a number with a sign.
    fn integers(&self, e: ExprId) -> Option<(Terms, i128)> {
        let width = self.width(e);
        let (terms, constant) = self.linear(e);
        let terms = terms.into_iter();
        let terms: Terms = terms.map(|(e, f)| (e, with_sign(f, width))).collect();
        let constant = with_sign(constant, width);
        holds(self.sum_range(&terms, constant), width).then_some((terms, constant))
    }

    /// Whether `a < b`, of sums that do not wrap and are not negative, if their difference says it.
    pub(super) fn decided_order(&self, a: ExprId, b: ExprId) -> Option<bool> {
        let sum = |e: ExprId| matches!(self.node(e), Node::Bin(Bin::Add, ..));
        if !sum(a) && !sum(b) {
            return None;
        }
        let (a, b) = (self.integers(a)?, self.integers(b)?);
        if [&a, &b].iter().any(|s| self.sum_range(&s.0, s.1).0 < 0) {
            return None;
        }
        let (terms, constant) = less(a, b);
        let (low, high) = self.sum_range(&terms, constant);
        (high < 0 || low >= 0).then_some(high < 0)
    }

    fn of_integers(&mut self, terms: &[(ExprId, i128)], constant: i128, width: u32) -> ExprId {
        let mut terms: Vec<_> = terms.iter().map(|(e, f)| (*e, *f as u64)).collect();
        self.sum(&mut terms, constant as u64, width)
    }

    /// A sum that does not wrap, extended with its sign: the same sum of more bits.
    pub(super) fn extended_sum(&mut self, e: ExprId, width: u32) -> Option<ExprId> {
        let (terms, constant) = self.integers(e)?;
        if matches!(terms.as_slice(), [(only, 1)] if *only == e && constant == 0) {
            return None;
        }
        let mut wide = Terms::new();
        for (e, factor) in terms {
            let e = match *self.node(e) {
                Node::SignExtend(of) => self.sign_extend(of, width),
                _ => self.resize(e, width),
            };
            wide.push((e, factor));
        }
        Some(self.of_integers(&wide, constant, width))
    }

    /// `a < b` with signs, of sums that do not wrap: what has a positive factor in their difference on one side, the rest on the
    /// other.
    pub(super) fn signed_order(&mut self, a: ExprId, b: ExprId) -> Option<ExprId> {
        let width = self.width(a);
        let (terms, constant) = less(self.integers(a)?, self.integers(b)?);
        let (low, high) = self.sum_range(&terms, constant);
        if high < 0 || low >= 0 {
            return Some(self.truth(high < 0));
        }
        let (left, right): (Terms, Terms) = terms.iter().partition(|t| t.1 > 0);
        let right: Terms = right.into_iter().map(|(e, f)| (e, -f)).collect();
        let (more, less) = (constant.max(0), (-constant).max(0));
        let ranges = [self.sum_range(&left, more), self.sum_range(&right, less)];
        if !ranges.iter().all(|r| holds(*r, width)) {
            return None;
        }
        let rel = match ranges.iter().all(|r| r.0 >= 0) {
            true => Rel::Less,
            false => Rel::SignedLess,
        };
        let x = self.of_integers(&left, more, width);
        let y = self.of_integers(&right, less, width);
        if (x, y) == (a, b) && rel == Rel::SignedLess {
            return None;
        }
        Some(match rel {
            Rel::Less => self.compare(Rel::Less, x, y),
            _ => self.add(Node::Cmp(rel, x, y), 1),
        })
    }
}
