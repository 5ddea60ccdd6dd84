//! Where ways join: forget, prune, widen, keep.

use std::rc::Rc;

use super::graph::{Anchors, NodeId};
use super::progress::{self, Progress};
use super::subsume::includes;
use super::{Explorer, Round, Way, Why, forget, join, widen};
use crate::domain::Link;
use crate::flow::loops::LoopId;
use crate::rule::Rule;
use crate::state::State;

/// A node is placed at the first joining of ways after so many steps; at loop heads always.
pub const STRIDE: u32 = 8;

/// Most states kept at one place; the older ones of a long unrolled loop only cost time and memory.
const KEPT: usize = 48;

/// The same where paths are joined: states that are left apart then tell apart what readers of the packet found, and each lasts.
const MANY: usize = 256;

/// States at one place from which on one that arrives is joined with one of them. Below that, what is known of each is worth more.
const CROWD: usize = 12;

/// A path joins others only after this part of the visits that may be made: most functions are proved exactly before.
const PATIENCE: u64 = 8;

/// Rounds of a loop that is taken round by round in which no more than before is possible, and not the same either.
/// Folding the carries of a checksum takes three.
const SHRINKING: usize = 64;

/// Where a way arrives.
struct Here<'a> {
    /// the head of this loop, whose rounds are taken together
    counted: Option<LoopId>,
    /// which entry into the loop
    entry: Option<u64>,
    /// from outside the loop
    entering: bool,
    /// the head of any loop
    head: bool,
    anchors: &'a Anchors,
}

/// The counters of an older and a newer way through the same loops, as far as they may still prove
/// something.
fn pairs(old: &Anchors, new: &Anchors, progress: &[Progress]) -> Vec<(Link, Link)> {
    let mut all = Vec::new();
    for ((l, a), (_, b)) in old.iter().zip(new) {
        let hopeful = progress.get(*l).map(Progress::hopeful).unwrap_or_default();
        all.extend(
            a.iter()
                .zip(b)
                .zip(hopeful)
                .filter(|(_, ok)| *ok)
                .map(|((x, y), _)| (*x, *y)),
        );
    }
    all
}

impl Explorer<'_> {
    /// At the start of a block: true if a way that knew less has been here.
    pub(super) fn arrive(&mut self, way: &mut Way) -> Result<bool, Why> {
        let plan = self.plan;
        let Some(&block) = plan.blocks.of.get(way.at.0) else {
            return Ok(false);
        };
        if plan.blocks.starts.get(block) != Some(&way.at.0) {
            return Ok(false);
        }
        way.rounds.retain(|r| plan.loops.contains(r.of, block));
        let head = plan.loops.at_head(block);
        let irregular = plan.loops.irregular(block);
        let join = plan.blocks.before.get(block).is_some_and(|b| b.len() > 1);
        if head.is_none() && !irregular && !join {
            return Ok(false);
        }
        let counted = head.filter(|&l| plan.counted(l));
        let entering = head.is_some_and(|l| !way.rounds.iter().any(|r| r.of == l));
        if let (Some(l), true) = (head, entering) {
            self.entries += 1;
            way.rounds.push(Round {
                of: l,
                entry: self.entries,
                head: None,
            });
        }
        let round = head
            .and_then(|l| way.rounds.iter().find(|r| r.of == l))
            .cloned();
        if let (Some(l), false, Some(r)) = (counted, entering, &round) {
            self.note_progress(l, r, &way.state)?;
        }
        forget::forget(&mut way.state, plan, block);
        let anchors = self.anchors(way, head);
        let here = Here {
            counted,
            entry: round.as_ref().map(|r| r.entry),
            entering,
            head: head.is_some() || irregular,
            anchors: &anchors,
        };
        if self.pruned(way, block, &here)? {
            return Ok(true);
        }
        let soon = way.since < STRIDE && !self.m.options.joins_early;
        if head.is_none() && !irregular && soon {
            return Ok(false);
        }
        let joined = !here.head && way.rounds.is_empty() && self.join(way, block);
        if joined && self.pruned(way, block, &here)? {
            return Ok(true);
        }
        let mut widened = None;
        if let (Some(l), Some(last)) = (counted, round.as_ref().and_then(|r| r.head)) {
            if let Some(old) = self.graph.node(last).and_then(|n| n.state.clone()) {
                way.state =
                    widen::widen(&old, &way.state, &plan.thresholds).ok_or(Why::Uncounted(l))?;
            }
            widened = Some(l);
        }
        let links = counted
            .map(|l| progress::name_counters(&mut way.state, &plan.counters[l]))
            .unwrap_or_default();
        let id = self
            .graph
            .add(way.at, Rc::new(way.state.clone()), way.node, entering);
        self.graph.works(way.node, way.work);
        self.graph.name(id, links, anchors);
        if let Some(node) = self.graph.node_mut(id) {
            node.widened = widened;
            node.joined = joined.then_some(block);
            node.entry = round.as_ref().map_or(0, |r| r.entry);
        }
        if let Some(l) = head
            && let Some(r) = way.rounds.iter_mut().find(|r| r.of == l)
        {
            r.head = Some(id);
        }
        let kept = if self.joins() { MANY } else { KEPT };
        let here = self.seen.entry(block).or_default();
        here.push(id);
        if here.len() > kept {
            let oldest = here.remove(0);
            self.graph.drop_state(oldest);
        }
        way.node = Some(id);
        way.since = 0;
        way.work = 0;
        Ok(false)
    }

    /// Whether paths that meet are joined by now.
    fn joins(&self) -> bool {
        !self.plan.exact && (self.m.options.joins_early || self.visits >= self.most / PATIENCE)
    }

    /// Generalises the state with one that was kept here, where there are many.
    fn join(&self, way: &mut Way, block: usize) -> bool {
        let Some(here) = self.seen.get(&block) else {
            return false;
        };
        let few = here.len() < CROWD && !self.m.options.joins_early;
        if !self.joins() || few || self.plan.apart.contains(&block) {
            return false;
        }
        let states = here
            .iter()
            .rev()
            .filter_map(|&id| self.graph.node(id)?.state.clone());
        match states
            .into_iter()
            .find_map(|old| join::join(&old, &way.state))
        {
            Some(state) => {
                way.state = state;
                true
            }
            None => false,
        }
    }

    fn note_progress(&mut self, l: LoopId, round: &Round, state: &State) -> Result<(), Why> {
        let links = round
            .head
            .and_then(|h| self.graph.node(h))
            .map(|n| n.links.as_slice())
            .unwrap_or_default();
        let counted = self
            .progress
            .get_mut(l)
            .is_some_and(|p| p.note(&self.plan.counters[l], links, state));
        if counted || self.plan.budgeted(l).is_some() {
            Ok(())
        } else {
            Err(Why::Uncounted(l))
        }
    }

    /// Where the counters of the loops around stood when their rounds began. A way that joins another
    /// takes over what that one proved about its rounds, so it must have moved the counters as far.
    fn anchors(&self, way: &Way, own: Option<LoopId>) -> Anchors {
        let around = way
            .rounds
            .iter()
            .filter(|r| Some(r.of) != own && self.plan.counted(r.of));
        around
            .map(|r| {
                (
                    r.of,
                    r.head
                        .and_then(|h| self.graph.node(h))
                        .map(|n| n.links.clone())
                        .unwrap_or_default(),
                )
            })
            .collect()
    }

    fn pruned(&mut self, way: &Way, block: usize, at: &Here<'_>) -> Result<bool, Why> {
        let patience = if self.joins() { MANY as u32 } else { 16 };
        let Some(here) = self.seen.get_mut(&block) else {
            return Ok(false);
        };
        let mut useless = None;
        let mut unfinished = 0;
        for (i, &id) in here.iter().enumerate().rev() {
            let Some(node) = self.graph.node_mut(id) else {
                continue;
            };
            let Some(old) = node.state.clone() else {
                continue;
            };
            let complete = node.complete();
            if !complete {
                // An unfinished node is a former round of a loop (this one or one around it). Coming
                // round again is fine where a counter proves that this happens only so often.
                let same_entry = at.counted.is_some() && at.entry == Some(node.entry);
                if !same_entry {
                    unfinished += 1;
                    let same_entry = at.entry.is_none() || at.entry == Some(node.entry);
                    if at.head && same_entry && unfinished == 1 && includes(&old, &way.state, &[]) {
                        if self.m.off(Rule::UnboundedLoop) {
                            self.graph.works(way.node, way.work);
                            self.graph.edge(way.node, id, at.entering, true);
                            return Ok(true);
                        }
                        let open = |id: &&NodeId| {
                            let node = self.graph.node(**id);
                            node.is_some_and(|n| !n.complete() && Some(n.entry) == at.entry)
                        };
                        // What becomes less may come to an end.
                        if includes(&way.state, &old, &[])
                            || here.iter().filter(open).count() >= SHRINKING
                        {
                            return Err(Why::Endless);
                        }
                    }
                    continue;
                }
            }
            let moved = pairs(&node.anchors, at.anchors, &self.progress);
            if includes(&old, &way.state, &moved) {
                node.hits += 1;
                self.graph.works(way.node, way.work);
                self.graph.edge(way.node, id, at.entering, !complete);
                return Ok(true);
            }
            node.misses += 1;
            // A state that never helps only costs time; long unrolled loops leave many of them.
            if complete && node.misses > 3 * node.hits + patience {
                self.graph.drop_state(id);
                useless = Some(i);
            }
        }
        if let Some(i) = useless {
            here.remove(i);
        }
        Ok(false)
    }
}
