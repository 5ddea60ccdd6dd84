//! Where following paths goes back to when a loop turns out to multiply the ways: to when its head was first met, not
//! to the entry. What was followed before does not depend on how the loop is taken.

use std::collections::BTreeMap;

use super::explore::Followed;
use super::{Engine, State};

/// What there was when the head of a loop was met first.
pub(super) struct Checkpoint {
    head: usize,
    pending: BTreeMap<usize, Vec<State>>,
    paths: usize,
    back: usize,
    out: usize,
    missing: Option<String>,
    entered: BTreeMap<usize, usize>,
    gone: BTreeMap<usize, usize>,
    rounds: BTreeMap<usize, (usize, usize)>,
    crowds: Option<bool>,
}

impl Engine<'_> {
    /// Before the states that wait at a block go on: keeps what there is, if the block is the head of a loop that is
    /// met for the first time and may turn out so. What no waiting state can come to any more is forgotten.
    pub(super) fn keep(&self, kept: &mut Vec<Checkpoint>, block: usize, f: &Followed) {
        let is_head = self.loops.at_head(block).is_some() && f.within != Some(block);
        if !is_head || self.summed.contains_key(&block) || kept.iter().any(|c| c.head == block) {
            return;
        }
        kept.retain(|c| {
            f.pending
                .keys()
                .any(|b| *b == c.head || self.reaches(*b, c.head))
        });
        kept.push(Checkpoint {
            head: block,
            pending: f.pending.clone(),
            paths: f.paths.len(),
            back: f.back.len(),
            out: f.out.len(),
            missing: f.missing.clone(),
            entered: self.entered.clone(),
            gone: self.gone.clone(),
            rounds: self.rounds.clone(),
            crowds: self.crowds,
        });
    }

    /// If a loop has turned out to multiply the ways whose head was met here: takes it for any number of iterations, and
    /// goes back to when it was met. Whether it did.
    pub(super) fn go_back(&mut self, kept: &mut Vec<Checkpoint>, f: &mut Followed) -> bool {
        let met = |head| kept.iter().position(|c| c.head == head);
        let Some(at) = self.widens.and_then(met) else {
            return false;
        };
        // Those after it were met in states that are no more.
        let Some(c) = kept.drain(at..).next() else {
            return false;
        };
        self.widens = None;
        self.summed.entry(c.head).or_default();
        f.pending = c.pending;
        f.paths.truncate(c.paths);
        f.back.truncate(c.back);
        f.out.truncate(c.out);
        f.missing = c.missing;
        (self.entered, self.gone, self.rounds) = (c.entered, c.gone, c.rounds);
        self.crowds = self.crowds.and(c.crowds);
        self.left.clear();
        true
    }
}
