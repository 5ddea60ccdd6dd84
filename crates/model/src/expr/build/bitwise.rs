//! And, or, exclusive or: taken apart where one side has constant parts.

use super::super::eval::apply;
use super::super::{Arena, Bin, ExprId, Node, mask};

/// Most runs of equal bits for which a constant is laid out as pieces.
const RUNS: usize = 8;

impl Arena {
    /// The places where the parts of an expression begin, from the lowest bit.
    fn seams(&self, e: ExprId, seams: &mut Vec<u32>) {
        match self.node(e) {
            Node::Concat(parts) => {
                let mut at = 0;
                for p in parts.iter().rev() {
                    if let Node::Const(c) = self.node(*p) {
                        Self::runs(*c, at, self.width(*p), seams);
                    }
                    at += self.width(*p);
                    seams.push(at);
                }
            }
            Node::Const(c) => Self::runs(*c, 0, self.width(e), seams),
            _ => {}
        }
    }

    fn runs(c: u64, at: u32, width: u32, seams: &mut Vec<u32>) {
        seams.extend(
            (1..width)
                .filter(|i| (c >> i & 1) != (c >> (i - 1) & 1))
                .map(|i| at + i),
        );
    }

    pub(super) fn bitwise(&mut self, op: Bin, a: ExprId, b: ExprId) -> ExprId {
        let width = self.width(a);
        let (a, b) = if a > b { (b, a) } else { (a, b) };
        if let Some(done) = self.trivial(op, a, b) {
            return done;
        }
        // All or nothing of the other.
        for (x, y) in [(a, b), (b, a)] {
            if let (Bin::And, Some((c, p, q))) = (op, self.constants(x)) {
                let zero = self.number(0, width);
                if (p, q) == (mask(width), 0) {
                    return self.ite(c, y, zero);
                }
                if (p, q) == (0, mask(width)) {
                    return self.ite(c, zero, y);
                }
            }
        }
        let mut seams = Vec::new();
        self.seams(a, &mut seams);
        self.seams(b, &mut seams);
        seams.sort_unstable();
        seams.dedup();
        seams.retain(|s| *s > 0 && *s < width);
        if !seams.is_empty() && seams.len() < RUNS {
            seams.push(width);
            let mut from = 0;
            let mut pieces = Vec::new();
            for to in seams {
                let x = self.extract(a, from, to - from);
                let y = self.extract(b, from, to - from);
                let (x, y) = if x > y { (y, x) } else { (x, y) };
                let piece = match self.trivial(op, x, y) {
                    Some(done) => done,
                    None => self.add(Node::Bin(op, x, y), to - from),
                };
                pieces.push(piece);
                from = to;
            }
            pieces.reverse();
            return self.concat(&pieces);
        }
        self.add(Node::Bin(op, a, b), width)
    }

    pub(super) fn trivial(&mut self, op: Bin, a: ExprId, b: ExprId) -> Option<ExprId> {
        let width = self.width(a);
        let (x, y) = (self.constant(a), self.constant(b));
        if let (Some(x), Some(y)) = (x, y) {
            return Some(self.number(apply(op, width, x, y), width));
        }
        let ones = mask(width);
        let other = if x.is_some() { b } else { a };
        if x.or(y) == Some(0) {
            return Some(if op == Bin::And {
                self.number(0, width)
            } else {
                other
            });
        }
        match (op, x.or(y)) {
            (Bin::And, Some(c)) if c == ones => Some(other),
            (Bin::Or, Some(c)) if c == ones => Some(self.number(ones, width)),
            // Twice negated.
            (Bin::Xor, Some(c)) => match *self.node(other) {
                Node::Bin(Bin::Xor, p, q) => {
                    let inner = self.constant(p).map(|k| (k, q));
                    let (k, e) = inner.or_else(|| self.constant(q).map(|k| (k, p)))?;
                    if k == c { Some(e) } else { None }
                }
                _ => None,
            },
            (Bin::And | Bin::Or, None) if a == b => Some(a),
            (Bin::Xor, None) if a == b => Some(self.number(0, width)),
            // x and not x, x or not x.
            (Bin::And | Bin::Or, None) if width == 1 => {
                let not = self.not(a);
                let value = u64::from(op == Bin::Or);
                (not == b).then(|| self.number(value, 1))
            }
            _ => None,
        }
    }
}
