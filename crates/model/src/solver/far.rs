//! Bytes at offsets that are computed. The solver gets each as a variable of its own, which makes its
//! question one of bit-vectors alone, and may give two bytes at one offset two values. Where it did, it is
//! told that these two are one if their offsets are, and asked again (lemmas on demand: Ganesh and Dill,
//! CAV 2007, section 4). What cannot hold without those lemmas cannot hold with them.

use std::collections::BTreeMap;

use super::repair;
use crate::expr::eval::{Assignment, apply_node};
use crate::expr::ids::IdMap;
use crate::expr::walk::cone;
use crate::expr::{Arena, ExprId, Node, mask};

/// Values of symbols and packet bytes, by their expressions.
pub type Values = IdMap<ExprId, u64>;

/// Two bytes that are one if their offsets are equal.
pub type Lemma = (ExprId, ExprId);

/// An assignment made of a solver's values, and of an earlier one where it gave none; and the pairs of bytes
/// that it holds for different although they are one. Checksums are put right if that is wanted: before it is
/// asked where bytes at computed offsets are, because only a header that is right is passed over.
pub(super) fn assignment(
    arena: &Arena,
    values: &Values,
    earlier: Option<&Assignment>,
    repair: bool,
) -> (Assignment, Vec<Lemma>) {
    let mut made = earlier.map_or_else(Assignment::default, |a| {
        Assignment::new(a.symbols.clone(), a.packet.clone())
    });
    let mut known: IdMap<ExprId, u64> = values.clone();
    let (mut near, mut far) = (BTreeMap::new(), Vec::new());
    for (leaf, value) in values {
        match arena.node(*leaf) {
            Node::Sym(s) => {
                made.symbols.insert(*s, *value);
            }
            Node::Byte { base: None, at } => {
                let offset = *at as u64 & 0xffff;
                near.insert(offset, *leaf);
                made.packet.insert(offset, *value as u8);
            }
            Node::Byte { base: Some(b), at } => far.push((*leaf, *b, *at, *value)),
            _ => {}
        }
    }
    if repair {
        made = repair::checksums(&made);
        for (offset, leaf) in &near {
            let byte = made.packet.get(offset).copied().unwrap_or(0);
            known.insert(*leaf, u64::from(byte));
        }
    }
    // Operands before what is made of them.
    far.sort_unstable();
    let mut by_offset = near;
    let mut clashes = Vec::new();
    for (leaf, base, at, value) in far {
        let offset = abstracted(arena, base, &mut known).wrapping_add(at as u64) & 0xffff;
        match by_offset.get(&offset) {
            Some(other) if known.get(other) != Some(&value) => clashes.push((*other, leaf)),
            Some(_) => {}
            None => {
                by_offset.insert(offset, leaf);
                made.packet.insert(offset, value as u8);
            }
        }
    }
    (Assignment::new(made.symbols, made.packet), clashes)
}

/// The value of an expression whose symbols and bytes, those at computed offsets too, are `known`.
fn abstracted(arena: &Arena, e: ExprId, known: &mut IdMap<ExprId, u64>) -> u64 {
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
