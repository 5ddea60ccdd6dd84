//! Expressions of packets of which something is known.

use std::collections::BTreeMap;

use super::ids::IdMap;
use super::sets::Place;
use super::support::Support;
use super::walk::{again, cone, each_child};
use super::{Arena, ExprId, Node, SymId};

/// Facts about some packets.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Facts {
    /// bytes that they have, by their place as it is once the other bytes are known: what a place is computed
    /// from may be known, too
    pub bytes: BTreeMap<Place, u8>,
    /// conditions, as they are once the bytes are known, and whether they hold
    pub conditions: BTreeMap<ExprId, bool>,
    /// what symbols stand for, parameters for instance
    pub symbols: BTreeMap<SymId, u64>,
}

/// Puts what is known in place of what expressions are made of, each expression once: what many share, as the
/// guards of paths do, is worked out for the first of them. Of one arena's expressions only.
#[derive(Clone, Debug, Default)]
pub struct Given {
    facts: Facts,
    /// the bytes and symbols that are known
    told: Support,
    /// the conditions that are, and what each depends on; in order
    conditions: Vec<(ExprId, Support)>,
    /// what depends on any of that
    made: IdMap<ExprId, ExprId>,
}

impl Given {
    /// For these facts.
    #[must_use]
    pub fn new(facts: Facts) -> Self {
        let bytes = Support::bytes(facts.bytes.keys());
        let symbols = facts.symbols.keys().map(|s| Support::symbol(*s));
        Self {
            told: symbols.fold(bytes, Support::or),
            conditions: Vec::new(),
            facts,
            made: IdMap::default(),
        }
    }

    /// The expressions as they are then.
    pub fn of(&mut self, arena: &mut Arena, roots: &[ExprId]) -> Vec<ExprId> {
        if self.conditions.is_empty() {
            let each = self.facts.conditions.keys();
            self.conditions = each.map(|e| (*e, arena.support(*e))).collect();
        }
        let known = |e: ExprId| !self.concerns(arena, e) || self.made.contains_key(&e);
        for id in cone(arena, roots, known) {
            let made = self.step(arena, id);
            self.made.insert(id, made);
        }
        let of = |e: &ExprId| self.made.get(e).copied().unwrap_or(*e);
        roots.iter().map(of).collect()
    }

    /// Whether it may be another one then: something that is known is among what it is made of.
    fn concerns(&self, arena: &Arena, e: ExprId) -> bool {
        let support = arena.support(e);
        let mut conditions = self.conditions.iter().take_while(|c| c.0 <= e);
        support.meets(self.told) || conditions.any(|c| c.1.within(support))
    }

    /// One whose operands are worked out.
    fn step(&self, arena: &mut Arena, id: ExprId) -> ExprId {
        let get = |e: &ExprId| self.made.get(e).copied().unwrap_or(*e);
        let mut same = true;
        each_child(arena.node(id), |c| same &= get(&c) == c);
        let made = if same {
            id
        } else {
            let (node, width) = (arena.node(id).clone(), arena.width(id));
            again(arena, id, &node, width, &get)
        };
        let known = match arena.node(made) {
            Node::Byte { base, at } => self.facts.bytes.get(&(*base, *at)).map(|v| u64::from(*v)),
            Node::Sym(s) if !self.facts.symbols.is_empty() => self.facts.symbols.get(s).copied(),
            _ if self.facts.conditions.is_empty() => None,
            _ => self.facts.conditions.get(&made).map(|v| u64::from(*v)),
        };
        match known {
            Some(v) => arena.number(v, arena.width(made)),
            None => made,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Bin, Rel};
    use super::*;

    /// The byte at an offset that the first byte's value says.
    fn behind(a: &mut Arena) -> ExprId {
        let zero = a.number(0, 64);
        let length = a.byte(zero);
        let zeros = a.number(0, 56);
        let offset = a.concat(&[zeros, length]);
        let four = a.number(4, 64);
        let offset = a.binary(Bin::Add, offset, four);
        a.byte(offset)
    }

    #[test]
    fn a_byte_that_is_known_moves_the_places_computed_from_it() {
        let mut a = Arena::new();
        let byte = behind(&mut a);
        let facts = |bytes: &[(Place, u8)]| Facts {
            bytes: bytes.iter().copied().collect(),
            ..Facts::default()
        };
        let mut given = Given::new(facts(&[((None, 0), 6)]));
        let moved = given.of(&mut a, &[byte]);
        assert_eq!(*a.node(moved[0]), Node::Byte { base: None, at: 10 });
        // What is known of the place that it moves to is known of it.
        let mut given = Given::new(facts(&[((None, 0), 6), ((None, 10), 9)]));
        let known = given.of(&mut a, &[byte]);
        assert_eq!(a.constant(known[0]), Some(9));
    }

    #[test]
    fn a_symbol_that_is_a_number_decides_over_what_is_made_of_it() {
        let mut a = Arena::new();
        let count = a.sym("count", 8, super::super::Origin::Param);
        let four = a.number(4, 8);
        let many = a.compare(Rel::Eq, count, four);
        let byte = behind(&mut a);
        let chosen = a.ite(many, four, byte);
        let Node::Sym(symbol) = *a.node(count) else {
            unreachable!()
        };
        let facts = |value| Facts {
            symbols: [(symbol, value)].into(),
            ..Facts::default()
        };
        let made = Given::new(facts(4)).of(&mut a, &[chosen, many]);
        assert_eq!(
            made.iter().map(|e| a.constant(*e)).collect::<Vec<_>>(),
            [Some(4), Some(1)]
        );
        assert_eq!(Given::new(facts(3)).of(&mut a, &[chosen]), [byte]);
    }

    #[test]
    fn a_condition_decides_choices_and_is_asked_once() {
        let mut a = Arena::new();
        let byte = behind(&mut a);
        let nine = a.number(9, 8);
        let is = a.compare(Rel::Eq, byte, nine);
        let other = a.number(7, 8);
        let chosen = a.ite(is, byte, other);
        let facts = Facts {
            conditions: [(is, false)].into(),
            ..Facts::default()
        };
        let mut given = Given::new(facts);
        assert_eq!(given.of(&mut a, &[chosen]), [other]);
        let size = a.len();
        let none = a.number(0, 1);
        assert_eq!(given.of(&mut a, &[chosen, is]), [other, none]);
        assert!(a.len() <= size + 1);
    }
}
