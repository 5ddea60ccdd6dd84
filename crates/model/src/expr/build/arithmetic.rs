//! Sums in a normal form, products, shifts and remainders.

use std::collections::BTreeMap;

use super::super::{Arena, Bin, ExprId, Node, Rel, mask};

/// Most terms of a sum that is kept in normal form.
const TERMS: usize = 12;
/// Most sums and products that are taken apart to find the terms of a sum: those of two in normal form.
const APART: u32 = 64;

impl Arena {
    pub(super) fn shift(&mut self, op: Bin, a: ExprId, by: u32) -> ExprId {
        let width = self.width(a);
        if by == 0 || by >= width {
            return a;
        }
        let zeros = self.number(0, by);
        match op {
            Bin::Shl => {
                let kept = self.extract(a, 0, width - by);
                self.concat(&[kept, zeros])
            }
            Bin::Shr => {
                let kept = self.extract(a, by, width - by);
                self.concat(&[zeros, kept])
            }
            _ => {
                let kept = self.extract(a, by, width - by);
                self.sign_extend(kept, width)
            }
        }
    }

    pub(super) fn times(&mut self, a: ExprId, b: ExprId) -> ExprId {
        let width = self.width(a);
        let (a, b) = if self.constant(a).is_some() {
            (b, a)
        } else {
            (a, b)
        };
        match self.constant(b) {
            Some(0) => b,
            Some(c) if c == mask(width) => {
                let zero = self.number(0, width);
                self.minus(zero, a)
            }
            Some(c) if c.is_power_of_two() => self.shift(Bin::Shl, a, c.trailing_zeros()),
            _ => self.add(Node::Bin(Bin::Mul, a, b), width),
        }
    }

    /// A remainder by 2^k - 1 is found by adding the digits of k bits, as the Internet checksum does:
    /// a solver divides by trying, and adds at once.
    pub(super) fn remainder(&mut self, a: ExprId, b: ExprId) -> ExprId {
        let width = self.width(a);
        let plain = Node::Bin(Bin::Rem, a, b);
        let Some(m) = self.constant(b) else {
            return self.add(plain, width);
        };
        if m.is_power_of_two() {
            let mask = self.number(m - 1, width);
            return self.bitwise(Bin::And, a, mask);
        }
        let k = m.count_ones();
        if m == 0 || m != mask(k) || k < 8 || k > width / 2 {
            return self.add(plain, width);
        }
        // A checksum that followed its header's changes: the remainder that was asked for before.
        if k == 16
            && self.congruent
            && let Some(residue) = self.residue(a)
        {
            let print = (self.fingerprint(&residue), width);
            let mut known = self.remainders.get(&print).into_iter().flatten();
            if let Some((_, same)) = known.find(|r| self.same_residue(&residue, &r.0)) {
                return *same;
            }
            let made = self.digits(a, b, k);
            self.remainders
                .entry(print)
                .or_default()
                .push((residue, made));
            return made;
        }
        self.digits(a, b, k)
    }

    /// The remainder by `b`, 2^k - 1, by adding digits.
    fn digits(&mut self, a: ExprId, b: ExprId, k: u32) -> ExprId {
        let (width, m) = (self.width(a), mask(k));
        let plain = Node::Bin(Bin::Rem, a, b);
        let mut sum = a;
        for _ in 0..4 {
            if self.bounds(sum).1 < 2 * m {
                break;
            }
            let mut total = self.number(0, width);
            let mut low = 0;
            while low < width {
                let digit = self.extract(sum, low, k.min(width - low));
                let digit = self.resize(digit, width);
                total = self.plus(total, digit);
                low += k;
            }
            sum = total;
        }
        if self.bounds(sum).1 >= 2 * m {
            return self.add(plain, width);
        }
        let small = self.compare(Rel::Less, sum, b);
        let less = self.number(m.wrapping_neg(), width);
        let less = self.plus(sum, less);
        self.ite(small, sum, less)
    }

    /// The terms of a sum with their factors, and its constant. Of a sum of very many terms some are sums.
    #[must_use]
    pub fn linear(&self, e: ExprId) -> (Vec<(ExprId, u64)>, u64) {
        let width = self.width(e);
        let (mut terms, mut constant) = (Vec::<(ExprId, u64)>::new(), 0_u64);
        // What is younger first: a sum that several others contain is taken apart once, with all its factors.
        let mut todo = BTreeMap::from([(e, 1_u64)]);
        let mut left = APART;
        while let Some((e, factor)) = todo.pop_last() {
            let mut push = |e: ExprId, factor: u64| {
                let all = todo.entry(e).or_default();
                *all = all.wrapping_add(factor);
            };
            match *self.node(e) {
                Node::Const(c) => constant = constant.wrapping_add(c.wrapping_mul(factor)),
                Node::Bin(Bin::Add, a, b) if left > 0 => {
                    left -= 1;
                    push(a, factor);
                    push(b, factor);
                }
                Node::Bin(Bin::Mul, a, b) if left > 0 && self.constant(b).is_some() => {
                    left -= 1;
                    let c = self.constant(b).unwrap_or(1);
                    push(a, factor.wrapping_mul(c));
                }
                _ => terms.push((e, factor)),
            }
        }
        terms.retain(|t| t.1 & mask(width) != 0);
        (terms, constant & mask(width))
    }

    pub(super) fn sum(&mut self, terms: &mut [(ExprId, u64)], constant: u64, width: u32) -> ExprId {
        terms.sort_unstable();
        // Minus one bit: all ones or nothing.
        if let ([(bit, factor)], 0) = (&*terms, constant)
            && factor & mask(width) == mask(width)
            && self.bounds(*bit).1 == 1
        {
            let bit = self.extract(*bit, 0, 1);
            return self.pick(bit, mask(width), 0, width);
        }
        let mut total: Option<ExprId> = None;
        for (e, factor) in terms.iter() {
            let factor = factor & mask(width);
            let term = if factor == 1 {
                *e
            } else {
                let c = self.number(factor, width);
                self.add(Node::Bin(Bin::Mul, *e, c), width)
            };
            total = Some(match total {
                None => term,
                Some(t) => self.add(Node::Bin(Bin::Add, t, term), width),
            });
        }
        let constant = self.number(constant, width);
        match total {
            None => constant,
            Some(t) if self.constant(constant) == Some(0) => t,
            Some(t) => self.add(Node::Bin(Bin::Add, t, constant), width),
        }
    }

    pub(super) fn plus(&mut self, a: ExprId, b: ExprId) -> ExprId {
        let width = self.width(a);
        let (x, y) = (self.bits(a), self.bits(b));
        let apart = (x.value | x.mask) & (y.value | y.mask) == 0;
        if apart && self.constant(a).is_none() && self.constant(b).is_none() {
            return self.bitwise(Bin::Or, a, b);
        }
        let (mut terms, c) = self.linear(a);
        let (more, d) = self.linear(b);
        for (e, factor) in more {
            match terms.iter_mut().find(|t| t.0 == e) {
                Some(t) => t.1 = t.1.wrapping_add(factor),
                None => terms.push((e, factor)),
            }
        }
        terms.retain(|t| t.1 & mask(width) != 0);
        if terms.len() > TERMS {
            let (a, b) = if a > b { (b, a) } else { (a, b) };
            return self.add(Node::Bin(Bin::Add, a, b), width);
        }
        self.sum(&mut terms, c.wrapping_add(d), width)
    }

    /// `a - b`
    pub fn minus(&mut self, a: ExprId, b: ExprId) -> ExprId {
        let width = self.width(a);
        let (terms, c) = self.linear(b);
        let mut negated: Vec<_> = terms.iter().map(|t| (t.0, t.1.wrapping_neg())).collect();
        let negated = self.sum(&mut negated, c.wrapping_neg(), width);
        self.plus(a, negated)
    }
}
