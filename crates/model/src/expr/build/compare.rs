//! Comparisons.

use super::super::eval::relation;
use super::super::{Arena, Bin, ExprId, Node, Rel};

/// Most bits that are compared one by one.
const BITS: usize = 16;

/// An equality in other words.
enum Equal {
    /// as a condition
    Said(ExprId),
    /// of something else and another number
    Of(ExprId, ExprId),
}

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
            Rel::Less => {
                if let Some(is) = self.decided_order(a, b) {
                    return self.truth(is);
                }
            }
            Rel::SignedLess => {
                if let Some(e) = self.signed_order(a, b) {
                    return e;
                }
            }
        }
        self.add(Node::Cmp(rel, a, b), 1)
    }

    pub(super) fn equal(&mut self, a: ExprId, b: ExprId) -> ExprId {
        let (mut a, mut b) = if self.constant(a).is_some() {
            (b, a)
        } else {
            (a, b)
        };
        loop {
            let (x, y) = (self.bits(a), self.bits(b));
            if (x.value ^ y.value) & !x.mask & !y.mask != 0 {
                return self.truth(false);
            }
            let Some(c) = self.constant(b) else { break };
            if let Some(x) = self.constant(a) {
                return self.truth(x == c);
            }
            if self.width(a) == 1 {
                return if c == 1 { a } else { self.not(a) };
            }
            match self.simpler(a, c) {
                Some(Equal::Said(e)) => return e,
                Some(Equal::Of(e, c)) => (a, b) = (e, c),
                None => break,
            }
        }
        let (a, b) = if a > b && self.constant(b).is_none() {
            (b, a)
        } else {
            (a, b)
        };
        self.add(Node::Cmp(Rel::Eq, a, b), 1)
    }

    /// Condition that a term of several bits is this number, which its known bits allow.
    fn simpler(&mut self, a: ExprId, c: u64) -> Option<Equal> {
        let width = self.width(a);
        match self.node(a).clone() {
            Node::Ite(cond, p, q) => {
                // One of two numbers, or a number and something else, which is a chain of any length.
                if self.constant(p).is_none() && self.constant(q).is_none() {
                    return None;
                }
                let c = self.number(c, width);
                let said = self.deeper(|s| {
                    let (p, q) = (s.equal(p, c), s.equal(q, c));
                    let (other, p) = (s.not(cond), s.bitwise(Bin::And, cond, p));
                    let q = s.bitwise(Bin::And, other, q);
                    s.either(p, q)
                });
                said.map(Equal::Said)
            }
            Node::Concat(parts) => {
                // The known bits have compared what is constant above.
                let top = parts.first().copied().unwrap_or(a);
                if self.constant(top).is_some() {
                    let rest = width - self.width(top);
                    return Some(Equal::Of(self.extract(a, 0, rest), self.number(c, rest)));
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
                    return Some(Equal::Said(all));
                }
                let [(only, value)] = open.as_slice() else {
                    return None;
                };
                Some(Equal::Of(*only, self.number(*value, self.width(*only))))
            }
            Node::Bin(Bin::Add, p, q) => {
                let k = self.constant(q)?;
                Some(Equal::Of(p, self.number(c.wrapping_sub(k), width)))
            }
            _ => None,
        }
    }
}
