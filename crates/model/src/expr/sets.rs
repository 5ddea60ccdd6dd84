//! Conditions on one byte of the packet, as the set of its values for which they hold.

use std::collections::BTreeMap;

use super::eval::Assignment;
use super::walk::cone;
use super::{Arena, ExprId, Node};

/// Beyond so many nodes nobody asks.
const MOST: usize = 4000;

/// Values of a byte.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Set([bool; 256]);

impl Set {
    /// Every value.
    #[must_use]
    pub fn all() -> Self {
        Self([true; 256])
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

/// For a condition that depends on one byte at a constant offset and on nothing else: which, and the
/// values for which it holds.
#[must_use]
pub fn of(arena: &Arena, e: ExprId) -> Option<(i64, Set)> {
    let cone = cone(arena, &[e], |_| false);
    if arena.width(e) != 1 || cone.len() > MOST {
        return None;
    }
    let mut byte = None;
    for id in &cone {
        match arena.node(*id) {
            Node::Sym(_) | Node::Byte { base: Some(_), .. } => return None,
            Node::Byte { base: None, at } => {
                if byte.replace(*at).is_some() {
                    return None;
                }
            }
            _ => {}
        }
    }
    let at = byte?;
    let offset = u64::try_from(at).ok()?;
    let mut set = [false; 256];
    for (value, is) in (0..=255_u8).zip(&mut set) {
        let packet = BTreeMap::from([(offset, value)]);
        *is = Assignment::new(Default::default(), packet).value(arena, e) == 1;
    }
    Some((at, Set(set)))
}
