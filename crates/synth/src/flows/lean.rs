//! Writes that change nothing: words of a flow that no rewriter on its way changes are the packet's own.

use super::{Becomes, FLOW, programs};
use crate::Synthesis;
use crate::action::{Action, Value};
use crate::backward::WORDS;
use crate::diagram::{Id, Node};
use crate::field::Var;

/// An action without writes of words that each flow that comes to it leaves as they are, which saves their stores and their parts of
/// sums.
#[must_use]
pub fn lean(of: &Synthesis, number: u32) -> Option<Action> {
    let mut action = of.actions.get(number)?.clone();
    let mut unchanged = None;
    let comes = |root: Id| {
        let mut nodes = of.store.reachable(root).into_iter();
        nodes.any(|id| matches!(of.store.node(id), Node::Leaf(leaf) if *leaf == number))
    };
    let mut meet = |words: [bool; 4]| {
        let all = unchanged.get_or_insert([true; 4]);
        for (all, one) in all.iter_mut().zip(words) {
            *all &= one;
        }
    };
    let variants = of.flows.openings.values().flat_map(|o| &o.variants);
    for (program, way) in variants.flat_map(|v| &v.ways) {
        let last = way
            .hops
            .last()
            .map_or(WORDS.map(Becomes::Word), |hop| hop.words);
        let mut same = [false; 4];
        for ((same, becomes), word) in same.iter_mut().zip(last).zip(WORDS) {
            *same = becomes == Becomes::Word(word);
        }
        if comes(*program) {
            meet(same);
        }
        let back = way
            .back
            .map_or(Vec::new(), |back| programs(&of.store, back));
        if back.into_iter().any(comes) {
            // An answer's source is the flow's destination.
            let [source, destination, sport, dport] = same;
            meet([destination, source, dport, sport]);
        }
    }
    let unchanged = unchanged.unwrap_or([false; 4]);
    action.writes.retain(|_, write| match write.value {
        Value::Field(Var::Entry(FLOW, word), 0) => {
            let place = WORDS.iter().position(|w| *w == word);
            !place
                .and_then(|n| unchanged.get(n).copied())
                .unwrap_or(false)
        }
        _ => true,
    });
    Some(action)
}
