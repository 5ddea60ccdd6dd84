//! The symbols that an expression can depend on, as a set that errs to the safe side only: a Bloom filter of one
//! hash.

use super::sets::Place;
use super::{ExprId, Node, SymId};

/// Bytes of the packet and symbols.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Support(u64, u64);

impl Support {
    /// A byte of the packet. Those at constant offsets of most headers have a bit each.
    #[must_use]
    pub fn byte(base: Option<ExprId>, at: i64) -> Self {
        match base {
            None => Self(1 << (at & 63), 0),
            Some(base) => Self(0, spread(u64::from(base.0) << 16 ^ at as u64)),
        }
    }

    /// A symbol.
    #[must_use]
    pub fn symbol(s: SymId) -> Self {
        Self(0, spread(u64::from(s.0) << 48))
    }

    /// Bytes of the packet.
    #[must_use]
    pub fn bytes<'a>(places: impl IntoIterator<Item = &'a Place>) -> Self {
        let each = places.into_iter().map(|(base, at)| Self::byte(*base, *at));
        each.fold(Self::default(), Self::or)
    }

    /// Of a node, without its operands'.
    pub(super) fn own(node: &Node) -> Self {
        match node {
            Node::Byte { base, at } => Self::byte(*base, *at),
            Node::Sym(s) => Self::symbol(*s),
            _ => Self::default(),
        }
    }

    /// Of either.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self(self.0 | other.0, self.1 | other.1)
    }

    /// Whether something may be in both; if not, nothing is.
    #[must_use]
    pub fn meets(self, other: Self) -> bool {
        self.0 & other.0 != 0 || self.1 & other.1 != 0
    }

    /// Whether all of it may be in the other; if not, something is not.
    #[must_use]
    pub fn within(self, other: Self) -> bool {
        self.0 & !other.0 == 0 && self.1 & !other.1 == 0
    }
}

fn spread(n: u64) -> u64 {
    1 << (n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 58)
}
