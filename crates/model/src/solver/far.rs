//! Bytes at offsets that are computed. The solver gets each as a variable of its own, which makes its
//! question one of bit-vectors alone, and may give two bytes at one offset two values. Where it did, it is
//! told that these two are one if their offsets are, and asked again (lemmas on demand: Ganesh and Dill,
//! CAV 2007, section 4). What cannot hold without those lemmas cannot hold with them.

use std::collections::{BTreeMap, HashMap};

use crate::expr::eval::{Assignment, apply_node};
use crate::expr::walk::cone;
use crate::expr::{Arena, ExprId, Node, mask};

/// Values of symbols and packet bytes, by their expressions.
pub(super) type Values = HashMap<ExprId, u64>;

/// Two bytes that are one if their offsets are equal.
pub(super) type Lemma = (ExprId, ExprId);

/// An assignment made of a solver's values, and of an earlier one where it gave none; and the pairs of bytes
/// that it holds for different although they are one.
pub(super) fn assignment(
    arena: &Arena,
    values: &Values,
    earlier: Option<&Assignment>,
) -> (Assignment, Vec<Lemma>) {
    let mut symbols = earlier.map_or_else(HashMap::new, |a| a.symbols.clone());
    let mut packet = earlier.map_or_else(BTreeMap::new, |a| a.packet.clone());
    let mut by_offset: BTreeMap<u64, ExprId> = BTreeMap::new();
    let mut clashes = Vec::new();
    let mut leaves: Vec<ExprId> = values.keys().copied().collect();
    // Bytes at constant offsets first, then operands before what is made of them.
    let near = |e: &ExprId| !matches!(arena.node(*e), Node::Byte { base: Some(_), .. });
    leaves.sort_unstable_by_key(|e| (!near(e), *e));
    let mut known: HashMap<ExprId, u64> = values.clone();
    for leaf in leaves {
        let value = values.get(&leaf).copied().unwrap_or(0);
        match arena.node(leaf) {
            Node::Sym(s) => {
                symbols.insert(*s, value);
            }
            Node::Byte { base, at } => {
                let from = base.map_or(0, |b| abstracted(arena, b, &mut known));
                let offset = from.wrapping_add(*at as u64) & 0xffff;
                match by_offset.get(&offset) {
                    Some(other) if values.get(other) != Some(&value) => {
                        clashes.push((*other, leaf));
                    }
                    Some(_) => {}
                    None => {
                        by_offset.insert(offset, leaf);
                        packet.insert(offset, value as u8);
                    }
                }
            }
            _ => {}
        }
    }
    (Assignment::new(symbols, packet), clashes)
}

/// The value of an expression whose symbols and bytes, those at computed offsets too, are `known`.
fn abstracted(arena: &Arena, e: ExprId, known: &mut HashMap<ExprId, u64>) -> u64 {
    for id in cone(arena, &[e], |id| known.contains_key(&id)) {
        let value = match arena.node(id) {
            Node::Sym(_) | Node::Byte { .. } => 0,
            node => apply_node(arena, node, arena.width(id), |x| {
                known.get(&x).copied().unwrap_or(0)
            }),
        };
        known.insert(id, value & mask(arena.width(id)));
    }
    known.get(&e).copied().unwrap_or(0)
}
