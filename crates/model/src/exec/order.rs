//! In which order paths are followed, and where they wait for each other.

use millrace_check::moment::Moment;
use std::collections::{BTreeMap, BTreeSet};

use millrace_check::flow::graph::Blocks;

use super::{Engine, State, merge};
use crate::expr::Node;
use crate::expr::walk::cone;

/// Most blocks for which it is worked out which reach which.
const REACH: usize = 6000;

/// So many states that wait at the head of a loop merge though their pointers, and fields that they read, are at
/// different computed offsets.
const CROWD: usize = 64;

impl Engine<'_> {
    /// Whether a state at one block may come to another.
    pub(super) fn reaches(&self, from: usize, to: usize) -> bool {
        let word = self.reach.get(from).and_then(|r| r.get(to / 64));
        word.is_some_and(|w| w >> (to % 64) & 1 == 1)
    }

    /// The waiting block that no other one, which it does not reach itself, can still reach.
    pub(super) fn next_block(&self, pending: &BTreeMap<usize, Vec<State>>) -> Option<usize> {
        let reaches = |a, b| self.reaches(a, b);
        let rank = |b: &usize| self.blocks.rank.get(*b).copied().flatten();
        let free = pending.keys().filter(|b| {
            pending
                .keys()
                .all(|a| a == *b || !reaches(*a, **b) || reaches(**b, *a))
        });
        free.min_by_key(|b| rank(b))
            .or_else(|| pending.keys().min_by_key(|b| rank(b)))
            .copied()
    }

    /// In the last eighth of the time paths are brought to their end, merged or not: a report of some paths
    /// says more than one of none. Those come first whose guards speak of few computed offsets,
    /// because a solver is slow where offsets are computed from what is at computed offsets.
    pub(super) fn easiest(&self, pending: &mut BTreeMap<usize, Vec<State>>) -> Option<State> {
        if Moment::now() < self.hurry {
            return None;
        }
        let cost = |s: &State| {
            let mut bases = BTreeSet::new();
            for id in cone(&self.arena, &s.guard, |_| false) {
                if let Node::Byte { base: Some(b), .. } = self.arena.node(id) {
                    bases.insert(*b);
                }
            }
            bases.len()
        };
        let all = pending
            .iter()
            .flat_map(|(b, states)| states.iter().enumerate().map(|(i, s)| (*b, i, s)));
        let rank = |b: usize| self.blocks.rank.get(b).copied().flatten();
        let (block, index, _) =
            all.min_by_key(|(b, _, s)| (cost(s), std::cmp::Reverse(rank(*b))))?;
        let states = pending.get_mut(&block)?;
        let s = states.swap_remove(index);
        if states.is_empty() {
            pending.remove(&block);
        }
        Some(s)
    }

    /// Merges what arrived at a join.
    pub(super) fn arrive(&mut self, block: usize, states: Vec<State>) -> Vec<State> {
        let joins = self.blocks.before.get(block).is_some_and(|b| b.len() > 1);
        if !joins {
            return states;
        }
        // A call splits paths in the middle of a block: those have passed the join.
        let start = self.blocks.starts.get(block).copied();
        let (mut states, mut kept): (Vec<State>, Vec<State>) =
            states.into_iter().partition(|s| Some(s.at) == start);
        if let Some(live) = self.live.get(block) {
            states.iter_mut().for_each(|s| merge::forget(s, live));
        }
        kept = self.folded(kept, states);
        // Better a choice between fields than as many paths as there are ways to them.
        let crowd = kept.len() >= CROWD && self.loops.at_head(block).is_some();
        if crowd && self.crowds.is_some() {
            self.crowds = Some(true);
            self.crowded = true;
            kept = self.folded(Vec::new(), kept);
            self.crowded = false;
        }
        kept
    }

    /// States, with others merged into them.
    fn folded(&mut self, mut kept: Vec<State>, states: Vec<State>) -> Vec<State> {
        let mut kinds: Vec<u64> = kept.iter().map(merge::kind).collect();
        for mut s in states {
            // What two became may merge with a third that neither of them would.
            let kind = merge::kind(&s);
            let mut i = if self.late() { kept.len() } else { 0 };
            while let Some(k) = kept.get(i) {
                let merged = (kinds.get(i) == Some(&kind)).then(|| self.merged(k, &s));
                match merged.flatten() {
                    Some(m) => {
                        s = m;
                        kept.remove(i);
                        kinds.remove(i);
                        // Each merger begins anew, so each asks for the time.
                        i = if self.late() { kept.len() } else { 0 };
                    }
                    None => i += 1,
                }
            }
            kept.push(s);
            kinds.push(kind);
        }
        kept
    }
}

/// For each block the set of those that it reaches, one bit each.
pub(super) fn reach(blocks: &Blocks) -> Vec<Vec<u64>> {
    let n = blocks.starts.len();
    if n > REACH {
        return Vec::new();
    }
    let mut reach = vec![vec![0_u64; n.div_ceil(64)]; n];
    let mut changed = true;
    while changed {
        changed = false;
        for &b in blocks.order.iter().rev() {
            let mut set = reach[b].clone();
            for &to in &blocks.next[b] {
                set[to / 64] |= 1 << (to % 64);
                for (x, y) in set.iter_mut().zip(&reach[to]) {
                    *x |= y;
                }
            }
            if set != reach[b] {
                reach[b] = set;
                changed = true;
            }
        }
    }
    reach
}
