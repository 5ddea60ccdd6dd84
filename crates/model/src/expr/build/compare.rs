//! Comparisons.

use super::super::eval::relation;
use super::super::{Arena, Bin, ExprId, Node, Rel};

/// Most bits that are compared one by one.
const BITS: usize = 16;

impl Arena {
    /// A comparison.
    pub fn compare(&mut self, rel: Rel, a: ExprId, b: ExprId) -> ExprId {
        if a == b {
            return self.truth(rel == Rel::Eq && a == b);
        }
        let width = self.width(a);
        if let (Some(x), Some(y)) = (self.constant(a), self.constant(b)) {
            return self.truth(relation(rel, width, x, y));
        }
        let ((amin, amax), (bmin, bmax)) = (self.bounds(a), self.bounds(b));
        match rel {
            Rel::Less if amax < bmin => return self.truth(true),
            Rel::Less if amin >= bmax => return self.truth(false),
            Rel::Eq => return self.equal(a, b),
            // Of numbers that are not negative the signs do not matter.
            Rel::SignedLess if (amax | bmax) >> (width - 1) & 1 == 0 => {
                return self.compare(Rel::Less, a, b);
            }
            _ => {}
        }
        self.add(Node::Cmp(rel, a, b), 1)
    }

    pub(super) fn equal(&mut self, a: ExprId, b: ExprId) -> ExprId {
        let (a, b) = if self.constant(a).is_some() {
            (b, a)
        } else {
            (a, b)
        };
        let (x, y) = (self.bits(a), self.bits(b));
        if (x.value ^ y.value) & !x.mask & !y.mask != 0 {
            return self.truth(false);
        }
        let width = self.width(a);
        if let Some(c) = self.constant(b) {
            match self.node(a).clone() {
                _ if width == 1 => return if c == 1 { a } else { self.not(a) },
                Node::Ite(cond, p, q) => {
                    let (yes, no) = (self.constant(p), self.constant(q));
                    if yes.is_some() || no.is_some() {
                        let (p, q) = (self.equal(p, b), self.equal(q, b));
                        let (other, p) = (self.not(cond), self.bitwise(Bin::And, cond, p));
                        let q = self.bitwise(Bin::And, other, q);
                        return self.either(p, q);
                    }
                }
                Node::Concat(parts) => {
                    // The known bits have compared what is constant above.
                    let top = parts.first().copied().unwrap_or(a);
                    if self.constant(top).is_some() {
                        let rest = width - self.width(top);
                        let a = self.extract(a, 0, rest);
                        let c = self.number(c, rest);
                        return self.equal(a, c);
                    }
                    // Constant parts agree, as the known bits say.
                    let mut open = Vec::new();
                    let mut top = width;
                    for p in &parts {
                        top -= self.width(*p);
                        if self.constant(*p).is_none() {
                            open.push((*p, c >> top));
                        }
                    }
                    if open.len() <= BITS && open.iter().all(|(p, _)| self.width(*p) == 1) {
                        let mut all = self.truth(true);
                        for (p, value) in open {
                            let is = if value & 1 == 1 { p } else { self.not(p) };
                            all = self.bitwise(Bin::And, all, is);
                        }
                        return all;
                    }
                    if let [(only, value)] = open.as_slice() {
                        let value = self.number(*value, self.width(*only));
                        return self.equal(*only, value);
                    }
                }
                Node::Bin(Bin::Add, p, q) => {
                    if let Some(k) = self.constant(q) {
                        let rest = self.number(c.wrapping_sub(k), width);
                        return self.equal(p, rest);
                    }
                }
                _ => {}
            }
        }
        let (a, b) = if a > b && self.constant(b).is_none() {
            (b, a)
        } else {
            (a, b)
        };
        self.add(Node::Cmp(Rel::Eq, a, b), 1)
    }
}
