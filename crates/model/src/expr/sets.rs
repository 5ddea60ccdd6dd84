//! Conditions on one byte of the packet, as the set of its values for which they hold.

use super::eval::apply_node;
use super::ids::IdMap;
use super::walk::{children, cone_within};
use super::{Arena, ExprId, Node, mask};

/// Beyond so many nodes nobody asks.
const MOST: usize = 4000;

/// Values of a byte.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Set([u64; 4]);

impl Set {
    /// Every value.
    #[must_use]
    pub fn all() -> Self {
        Self([u64::MAX; 4])
    }

    /// This value alone.
    #[must_use]
    pub fn one(value: u8) -> Self {
        let mut set = Self([0; 4]);
        set.insert(value);
        set
    }

    fn insert(&mut self, value: u8) {
        self.0[usize::from(value >> 6)] |= 1 << (value & 63);
    }

    fn with(&self, other: &Self, f: impl Fn(u64, u64) -> u64) -> Self {
        let mut out = self.clone();
        for (a, b) in out.0.iter_mut().zip(&other.0) {
            *a = f(*a, *b);
        }
        out
    }

    /// The values of either.
    #[must_use]
    pub fn or(&self, other: &Self) -> Self {
        self.with(other, |a, b| a | b)
    }

    /// The values of both.
    #[must_use]
    pub fn both(&self, other: &Self) -> Self {
        self.with(other, |a, b| a & b)
    }

    /// The values that are not there.
    #[must_use]
    pub fn without(&self, other: &Self) -> Self {
        self.with(other, |a, b| a & !b)
    }

    /// Those of its values for which something holds.
    #[must_use]
    pub fn filtered(&self, holds: impl Fn(&u8) -> bool) -> Self {
        let mut out = Self([0; 4]);
        self.values().filter(holds).for_each(|v| out.insert(v));
        out
    }

    /// Its values.
    pub fn values(&self) -> impl Iterator<Item = u8> + '_ {
        let words = (0_u8..4).zip(self.0);
        words.flat_map(|(at, mut left)| {
            std::iter::from_fn(move || {
                let bit = left.trailing_zeros() as u8;
                left &= left.checked_sub(1)?;
                Some(at << 6 | bit)
            })
        })
    }

    /// The value, if there is one only.
    #[must_use]
    pub fn only(&self) -> Option<u8> {
        let mut values = self.values();
        let first = values.next()?;
        values.next().is_none().then_some(first)
    }
}

/// A byte of the packet: the part of its offset that is computed, and the constant part.
pub type Place = (Option<ExprId>, i64);

/// For a condition that depends on one byte and on nothing else: which, and the values for which it holds.
#[must_use]
pub fn of(arena: &Arena, e: ExprId) -> Option<(Place, Set)> {
    let is_byte = |id: ExprId| matches!(arena.node(id), Node::Byte { .. });
    if arena.width(e) != 1 || is_byte(e) {
        return None;
    }
    // What the byte's own place is computed from is no part of the condition.
    let above = cone_within(arena, &[e], is_byte, MOST)?;
    let mut byte = None;
    for id in &above {
        if let Node::Sym(_) = arena.node(*id) {
            return None;
        }
        for c in children(arena.node(*id))
            .into_iter()
            .filter(|c| is_byte(*c))
        {
            if byte.replace(c).is_some_and(|b| b != c) {
                return None;
            }
        }
    }
    let byte = byte?;
    let Node::Byte { base, at } = *arena.node(byte) else {
        return None;
    };
    // Where the byte lies does not matter: the condition is worked out from its value alone.
    let mut set = Set([0; 4]);
    let mut values: IdMap<ExprId, u64> = IdMap::default();
    for value in 0..=255_u8 {
        values.insert(byte, u64::from(value));
        for id in &above {
            let get = |e: ExprId| values.get(&e).copied().unwrap_or(0);
            let width = arena.width(*id);
            let result = apply_node(arena, arena.node(*id), width, get) & mask(width);
            values.insert(*id, result);
        }
        if values.get(&e) == Some(&1) {
            set.insert(value);
        }
    }
    Some(((base, at), set))
}
