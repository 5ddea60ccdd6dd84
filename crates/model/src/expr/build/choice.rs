//! Truth values and choices.

use super::super::walk::given_within;
use super::super::{Arena, Bin, ExprId, Node};

/// Most expressions in which what is decided is looked for.
const INSIDE: usize = 48;

impl Arena {
    /// A truth value negated.
    pub fn not(&mut self, e: ExprId) -> ExprId {
        if let Some(contrary) = self.negated(e) {
            return contrary;
        }
        let one = self.number(1, 1);
        if let Some(c) = self.constant(e) {
            return self.number(c ^ 1, 1);
        }
        let (a, b) = if e > one { (one, e) } else { (e, one) };
        self.add(Node::Bin(Bin::Xor, a, b), 1)
    }

    /// The truth value whose contrary this one is.
    #[must_use]
    pub fn negated(&self, e: ExprId) -> Option<ExprId> {
        match *self.node(e) {
            Node::Bin(Bin::Xor, a, b) if self.width(e) == 1 => {
                if self.constant(a) == Some(1) {
                    Some(b)
                } else {
                    (self.constant(b) == Some(1)).then_some(a)
                }
            }
            _ => None,
        }
    }

    /// All of them hold.
    pub fn all(&mut self, of: &[ExprId]) -> ExprId {
        let start = self.truth(true);
        of.iter().fold(start, |a, b| self.bitwise(Bin::And, a, *b))
    }

    /// Either holds.
    pub fn either(&mut self, a: ExprId, b: ExprId) -> ExprId {
        self.bitwise(Bin::Or, a, b)
    }

    /// The condition and the two constants that an expression is one of.
    pub(super) fn constants(&self, e: ExprId) -> Option<(ExprId, u64, u64)> {
        match *self.node(e) {
            Node::Ite(c, p, q) => Some((c, self.constant(p)?, self.constant(q)?)),
            _ => None,
        }
    }

    /// A choice between two numbers.
    pub(super) fn pick(&mut self, c: ExprId, a: u64, b: u64, width: u32) -> ExprId {
        let (a, b) = (self.number(a, width), self.number(b, width));
        self.ite(c, a, b)
    }

    /// An expression with the choices in it that a condition decides, if it is small.
    fn decided(&mut self, e: ExprId, c: ExprId, holds: bool) -> ExprId {
        let decided = self.deeper(|a| given_within(a, e, c, holds, INSIDE));
        decided.unwrap_or(e)
    }

    /// One or the other.
    pub fn ite(&mut self, c: ExprId, a: ExprId, b: ExprId) -> ExprId {
        // What the condition has decided already.
        let (a, b) = (self.decided(a, c, true), self.decided(b, c, false));
        if a == b {
            return a;
        }
        match self.constant(c) {
            Some(1) => a,
            Some(_) => b,
            None if self.width(a) == 1
                && self.constant(a) == Some(1)
                && self.constant(b) == Some(0) =>
            {
                c
            }
            None if self.width(a) == 1
                && self.constant(a) == Some(0)
                && self.constant(b) == Some(1) =>
            {
                self.not(c)
            }
            None => {
                let width = self.width(a);
                self.add(Node::Ite(c, a, b), width)
            }
        }
    }
}
