//! Building expressions: every rule of simplification is in this folder, and each keeps the value
//! (tests/simplify.rs holds them against plain arithmetic).

mod arithmetic;
mod bitwise;
mod choice;
mod compare;
mod effort;
mod fingerprint;
mod parts;
pub(in crate::expr) mod residue;
mod signed;

pub(super) use effort::Effort;

use super::eval::apply;
use super::{Arena, Bin, ExprId, Node, mask};

impl Arena {
    /// A number of this many bits.
    pub fn number(&mut self, value: u64, width: u32) -> ExprId {
        self.add(Node::Const(value & mask(width)), width)
    }

    /// A truth value.
    pub fn truth(&mut self, value: bool) -> ExprId {
        self.number(u64::from(value), 1)
    }

    /// A byte of the packet as it came in, at a 64-bit offset.
    pub fn byte(&mut self, offset: ExprId) -> ExprId {
        let (mut terms, at) = self.linear(offset);
        let base = if terms.is_empty() {
            None
        } else {
            Some(self.sum(&mut terms, 0, 64))
        };
        self.add(
            Node::Byte {
                base,
                at: at as i64,
            },
            8,
        )
    }

    /// Arithmetic on operands of one width.
    pub fn binary(&mut self, op: Bin, a: ExprId, b: ExprId) -> ExprId {
        let width = self.width(a);
        if let (Some(x), Some(y)) = (self.constant(a), self.constant(b)) {
            return self.number(apply(op, width, x, y), width);
        }
        // Of one of two numbers and a third it is one of two numbers again.
        if let (Some((c, p, q)), Some(k)) = (self.constants(a), self.constant(b)) {
            return self.pick(c, apply(op, width, p, k), apply(op, width, q, k), width);
        }
        if let (Some(k), Some((c, p, q))) = (self.constant(a), self.constants(b)) {
            return self.pick(c, apply(op, width, k, p), apply(op, width, k, q), width);
        }
        match op {
            Bin::Shl | Bin::Shr | Bin::Sar if self.constants(b).is_some() => {
                let (c, p, q) = self.constants(b).unwrap_or((b, 0, 0));
                let (p, q) = (self.shift(op, a, p as u32), self.shift(op, a, q as u32));
                self.ite(c, p, q)
            }
            Bin::Add => self.plus(a, b),
            Bin::And | Bin::Or | Bin::Xor => self.bitwise(op, a, b),
            Bin::Mul => self.times(a, b),
            Bin::Shl | Bin::Shr | Bin::Sar if self.constant(b).is_some() => {
                let by = self.constant(b).unwrap_or(0) as u32;
                self.shift(op, a, by)
            }
            Bin::Div if self.constant(b).is_some_and(u64::is_power_of_two) => {
                let by = self.constant(b).unwrap_or(1).trailing_zeros();
                self.shift(Bin::Shr, a, by)
            }
            Bin::Rem => self.remainder(a, b),
            _ => self.add(Node::Bin(op, a, b), width),
        }
    }
}
