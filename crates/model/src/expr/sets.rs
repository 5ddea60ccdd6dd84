//! Conditions on one byte of the packet, as the set of its values for which they hold.

use std::collections::BTreeMap;

use super::eval::Assignment;
use super::walk::{children, cone};
use super::{Arena, ExprId, Node};

/// Beyond so many nodes nobody asks.
const MOST: usize = 4000;
/// Bytes of the packet that it is tried on.
const FILLED: u64 = 256;

/// Values of a byte.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Set([bool; 256]);

impl Set {
    /// Every value.
    #[must_use]
    pub fn all() -> Self {
        Self([true; 256])
    }

    /// This value alone.
    #[must_use]
    pub fn one(value: u8) -> Self {
        let mut set = [false; 256];
        set[usize::from(value)] = true;
        Self(set)
    }

    /// The values of either.
    #[must_use]
    pub fn or(&self, other: &Self) -> Self {
        let mut out = self.clone();
        for (a, b) in out.0.iter_mut().zip(&other.0) {
            *a |= b;
        }
        out
    }

    /// The values of both.
    #[must_use]
    pub fn both(&self, other: &Self) -> Self {
        let mut out = self.clone();
        for (a, b) in out.0.iter_mut().zip(&other.0) {
            *a &= b;
        }
        out
    }

    /// The values that are not there.
    #[must_use]
    pub fn without(&self, other: &Self) -> Self {
        let mut out = self.clone();
        for (a, b) in out.0.iter_mut().zip(&other.0) {
            *a &= !b;
        }
        out
    }

    /// Those of its values for which something holds.
    #[must_use]
    pub fn filtered(&self, holds: impl Fn(&u8) -> bool) -> Self {
        let mut out = self.clone();
        for (v, is) in (0..=255_u8).zip(&mut out.0) {
            *is &= holds(&v);
        }
        out
    }

    /// Its values.
    pub fn values(&self) -> impl Iterator<Item = u8> + '_ {
        (0..=255_u8)
            .zip(&self.0)
            .filter_map(|(v, is)| is.then_some(v))
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
    let above = cone(arena, &[e], is_byte);
    if above.len() > MOST {
        return None;
    }
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
    let Node::Byte { base, at } = *arena.node(byte?) else {
        return None;
    };
    // A packet in which the place is known and no other byte that is asked for is at it.
    let fill = || {
        (0..FILLED)
            .map(|at| (at, 0x45_u8))
            .collect::<BTreeMap<_, _>>()
    };
    let place = |packet: BTreeMap<u64, u8>| {
        let with = Assignment::new(Default::default(), packet);
        base.map_or(0, |b| with.value(arena, b))
    };
    let from = place(fill());
    let offset = from.wrapping_add(at as u64);
    if offset >= FILLED {
        return None;
    }
    let mut set = [false; 256];
    for (value, is) in (0..=255_u8).zip(&mut set) {
        let mut packet = if base.is_some() {
            fill()
        } else {
            BTreeMap::new()
        };
        packet.insert(offset, value);
        let with = Assignment::new(Default::default(), packet);
        if base.is_some_and(|b| with.value(arena, b) != from) {
            return None;
        }
        *is = with.value(arena, e) == 1;
    }
    Some(((base, at), Set(set)))
}
