//! Parts of expressions and expressions of parts: what undoes a compiler's loads, shifts and byte swaps.

use super::super::eval::apply;
use super::super::{Arena, Bin, ExprId, Node, Rel, mask};

/// How deep an extract is pushed into what it is of.
const DEPTH: u32 = 24;
/// Most members of a set, given as the bits of a constant, that are asked for one by one.
const SET: usize = 8;

impl Arena {
    /// Parts one after another, the highest bits first; together 64 bits at most.
    pub fn concat(&mut self, parts: &[ExprId]) -> ExprId {
        let mut flat: Vec<ExprId> = Vec::new();
        for p in parts {
            match self.node(*p).clone() {
                Node::Concat(inner) => inner.iter().for_each(|i| self.append(&mut flat, *i)),
                _ => self.append(&mut flat, *p),
            }
        }
        let width = flat.iter().map(|p| self.width(*p)).sum();
        match flat.as_slice() {
            [] => self.number(0, 1),
            [only] => *only,
            _ => self.add(Node::Concat(flat.into()), width),
        }
    }

    pub(super) fn append(&mut self, flat: &mut Vec<ExprId>, next: ExprId) {
        let joined = flat.last().and_then(|last| {
            let (a, b) = (self.width(*last), self.width(next));
            match (self.node(*last), self.node(next)) {
                (Node::Const(x), Node::Const(y)) => Some((Node::Const(x << b | y), a + b)),
                (Node::Extract { of: x, low: high }, Node::Extract { of: y, low })
                    if x == y && *high == low + b =>
                {
                    Some((Node::Extract { of: *x, low: *low }, a + b))
                }
                _ => None,
            }
        });
        let choices = flat
            .last()
            .and_then(|last| match (self.node(*last), self.node(next)) {
                (Node::Ite(c, a, b), Node::Ite(d, x, y)) if c == d => {
                    Some((*c, [*a, *x], [*b, *y]))
                }
                _ => None,
            });
        if let Some((c, yes, no)) = choices
            && let Some(whole) = self.deeper(|a| {
                let (yes, no) = (a.concat(&yes), a.concat(&no));
                a.ite(c, yes, no)
            })
        {
            flat.pop();
            flat.push(whole);
            return;
        }
        match joined {
            Some((node, width)) => {
                flat.pop();
                let whole = match node {
                    Node::Extract { of, low } => self.extract(of, low, width),
                    other => self.add(other, width),
                };
                flat.push(whole);
            }
            None => flat.push(next),
        }
    }

    /// As many bits from bit `low` on.
    pub fn extract(&mut self, e: ExprId, low: u32, width: u32) -> ExprId {
        self.part(e, low, width, DEPTH)
    }

    pub(super) fn part(&mut self, e: ExprId, low: u32, width: u32, depth: u32) -> ExprId {
        if low == 0 && width == self.width(e) {
            return e;
        }
        // Where parts are shared an expression is a tree of any size, but of this many parts only.
        if let Some(known) = self.extracts.get(&(e, low, width)) {
            return *known;
        }
        let before = self.effort.refused();
        let pushed = match depth.checked_sub(1) {
            Some(deeper) => self.deeper(|a| a.pushed(e, low, width, deeper)),
            None => {
                self.effort.refuse();
                None
            }
        };
        let made = match pushed {
            Some(done) => done,
            None => self.add(Node::Extract { of: e, low }, width),
        };
        if self.effort.is_settled() || self.effort.refused() == before {
            self.extracts.insert((e, low, width), made);
        }
        made
    }

    /// An extract pushed into what it is of.
    fn pushed(&mut self, e: ExprId, low: u32, width: u32, deeper: u32) -> ExprId {
        let whole = self.width(e);
        let plain = Node::Extract { of: e, low };
        match self.node(e).clone() {
            Node::Const(c) => self.number(c >> low, width),
            Node::Extract { of, low: inner } => self.part(of, inner + low, width, deeper),
            Node::Concat(parts) => {
                let mut pieces = Vec::new();
                let mut top = whole;
                for p in &parts {
                    let w = self.width(*p);
                    let bottom = top - w;
                    let (from, to) = (bottom.max(low), top.min(low + width));
                    if from < to {
                        pieces.push(self.part(*p, from - bottom, to - from, deeper));
                    }
                    top = bottom;
                }
                self.concat(&pieces)
            }
            Node::Ite(c, a, b) => {
                let a = self.part(a, low, width, deeper);
                let b = self.part(b, low, width, deeper);
                self.ite(c, a, b)
            }
            Node::SignExtend(a) if low + width <= self.width(a) => self.part(a, low, width, deeper),
            Node::Bin(op @ (Bin::And | Bin::Or | Bin::Xor), a, b) => {
                let a = self.part(a, low, width, deeper);
                let b = self.part(b, low, width, deeper);
                self.bitwise(op, a, b)
            }
            Node::Bin(Bin::Add, a, b) if low == 0 => {
                let a = self.part(a, 0, width, deeper);
                let b = self.part(b, 0, width, deeper);
                self.plus(a, b)
            }
            // A bit of a constant, chosen by a shift: whether the shift is one of those that bring a 1 there.
            Node::Bin(op @ (Bin::Shl | Bin::Shr), a, by)
                if width == 1 && self.constant(a).is_some() =>
            {
                let set = self.constant(a).unwrap_or(0);
                let amounts: Vec<u64> = (0..u64::from(whole))
                    .filter(|n| apply(op, whole, set, *n) >> low & 1 == 1)
                    .collect();
                if amounts.len() > SET {
                    return self.add(plain, width);
                }
                let mut any = self.truth(false);
                for n in amounts {
                    let n = self.number(n, whole);
                    let is = self.compare(Rel::Eq, by, n);
                    any = self.either(any, is);
                }
                any
            }
            _ => self.add(plain, width),
        }
    }

    /// Zero-extended or truncated.
    pub fn resize(&mut self, e: ExprId, width: u32) -> ExprId {
        let now = self.width(e);
        if width <= now {
            return self.extract(e, 0, width);
        }
        if let Some((c, p, q)) = self.constants(e) {
            return self.pick(c, p, q, width);
        }
        // A sum that cannot wrap is the sum of what is extended.
        if let Node::Bin(Bin::Add, a, b) = *self.node(e) {
            let most = u128::from(self.bounds(a).1) + u128::from(self.bounds(b).1);
            let wide = |s: &mut Self| {
                let (a, b) = (s.resize(a, width), s.resize(b, width));
                s.plus(a, b)
            };
            if most <= u128::from(mask(now))
                && let Some(sum) = self.deeper(wide)
            {
                return sum;
            }
        }
        let zeros = self.number(0, width - now);
        self.concat(&[zeros, e])
    }

    /// Sign-extended.
    pub fn sign_extend(&mut self, e: ExprId, width: u32) -> ExprId {
        let now = self.width(e);
        if width <= now {
            return self.extract(e, 0, width);
        }
        if now == 1 {
            return self.pick(e, mask(width), 0, width);
        }
        let sign = 1 << (now - 1);
        let bits = self.bits(e);
        if bits.mask & sign == 0 && bits.value & sign == 0 {
            return self.resize(e, width);
        }
        if let Some(sum) = self.extended_sum(e, width) {
            return sum;
        }
        self.add(Node::SignExtend(e), width)
    }

    /// The lowest `width` bits with their bytes in the other order.
    pub fn swap(&mut self, e: ExprId, width: u32) -> ExprId {
        let bytes: Vec<ExprId> = (0..width / 8).map(|i| self.extract(e, 8 * i, 8)).collect();
        self.concat(&bytes)
    }
}
