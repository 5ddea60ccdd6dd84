//! Conditions on one byte of the packet, as the set of its values for which they hold.

use super::eval::{apply_node, relation};
use super::walk::{children, cone_within};
use super::{Arena, ExprId, Node, mask};

/// Beyond this many nodes nobody asks.
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
    if let Some(found) = compared(arena, e) {
        return Some(found);
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
    // Where the byte lies does not matter: the condition is worked out from its value alone. Operands stand before
    // what they are operands of.
    let mut set = Set([0; 4]);
    let mut values = vec![0_u64; above.len()];
    for value in 0..=255_u8 {
        for (place, id) in above.iter().enumerate() {
            let get = |e: ExprId| {
                if e == byte {
                    return u64::from(value);
                }
                let found = above.binary_search(&e).ok();
                found.and_then(|at| values.get(at)).copied().unwrap_or(0)
            };
            let width = arena.width(*id);
            let result = apply_node(arena, arena.node(*id), width, get) & mask(width);
            if let Some(slot) = values.get_mut(place) {
                *slot = result;
            }
        }
        // The condition itself is the youngest.
        if values.last() == Some(&1) {
            set.insert(value);
        }
    }
    Some(((base, at), set))
}

/// The same for the most common: bits of the byte, as they are or laid out anew, are compared with a number.
fn compared(arena: &Arena, e: ExprId) -> Option<(Place, Set)> {
    let Node::Cmp(rel, a, b) = *arena.node(e) else {
        return None;
    };
    let mut byte = None;
    let (x, y) = (laid(arena, a, &mut byte)?, laid(arena, b, &mut byte)?);
    let width = arena.width(a);
    let holds = |v: &u8| relation(rel, width, value(&x, *v), value(&y, *v));
    Some((byte?, Set::all().filtered(holds)))
}

/// Bits of a byte, or a number: the lowest bit of it, which bits, and where they begin in what they are part of.
struct Run {
    of: Option<u64>,
    low: u32,
    width: u32,
    at: u32,
}

fn value(runs: &[Run], byte: u8) -> u64 {
    let part = |r: &Run| (r.of.unwrap_or(u64::from(byte)) >> r.low & mask(r.width)) << r.at;
    runs.iter().map(part).fold(0, |all, part| all | part)
}

/// Values made of numbers and bits of one byte by laying them out.
fn laid(arena: &Arena, e: ExprId, byte: &mut Option<Place>) -> Option<Vec<Run>> {
    let mut run = |e: ExprId, at: u32| {
        let (of, low) = match arena.node(e) {
            Node::Extract { of, low } => (*of, *low),
            _ => (e, 0),
        };
        let of = match *arena.node(of) {
            Node::Const(c) => Some(c),
            Node::Byte { base, at } if byte.get_or_insert((base, at)) == &(base, at) => None,
            _ => return None,
        };
        let width = arena.width(e);
        Some(Run { of, low, width, at })
    };
    let Node::Concat(parts) = arena.node(e) else {
        return Some(vec![run(e, 0)?]);
    };
    let mut at = 0;
    let each = parts.iter().rev().map(|part| {
        let made = run(*part, at);
        at += arena.width(*part);
        made
    });
    each.collect()
}

#[cfg(test)]
mod tests {
    use super::super::{Bin, Rel};
    use super::*;

    /// Truth for each value of a byte at offset 7, computed by substitution.
    fn one_by_one(a: &mut Arena, e: ExprId) -> Set {
        use super::super::given::{Facts, Given};
        let mut all = Set([0; 4]);
        for v in 0..=255 {
            let facts = Facts {
                bytes: [((None, 7), v)].into(),
                ..Facts::default()
            };
            let made = Given::new(facts).of(a, &[e]);
            match a.constant(made[0]).unwrap() {
                0 => {}
                _ => all.insert(v),
            }
        }
        all
    }

    #[test]
    fn a_condition_on_a_byte_holds_for_the_values_that_fulfil_it() {
        let mut a = Arena::new();
        let at = a.number(7, 64);
        let byte = a.byte(at);
        let (high, low) = (a.extract(byte, 4, 4), a.extract(byte, 0, 4));
        let zeros = a.number(0, 4);
        let nibble = a.concat(&[zeros, high]);
        let swapped = a.concat(&[low, high]);
        let three = a.number(3, 8);
        let sum = a.binary(Bin::Add, byte, three);
        for x in [byte, nibble, swapped, sum] {
            for rel in [Rel::Eq, Rel::Less, Rel::SignedLess] {
                for n in [0, 4, 0x54, 0x80, 255] {
                    let n = a.number(n, 8);
                    for (x, y) in [(x, n), (n, x), (x, byte)] {
                        let e = a.compare(rel, x, y);
                        if a.constant(e).is_some() {
                            continue;
                        }
                        let (place, set) = of(&a, e).unwrap();
                        assert_eq!(place, (None, 7));
                        assert_eq!(set, one_by_one(&mut a, e), "{:?}", a.node(e));
                    }
                }
            }
        }
    }
}
