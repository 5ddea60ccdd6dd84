//! Follows every way through a flow, one at a time, until each ends, or arrives where a way that
//! knew less has been before.
//!
//! At joins the state is kept as a node, after [`forget`] has dropped what no later proof is
//! expected to need. At the head of a loop with a counter the state is also widened, so that one
//! round stands for all; that the loop ends is then proved apart, by [`terminate`].

pub mod execute;
pub mod forget;
pub mod graph;
pub mod plan;
pub mod progress;
pub mod subsume;
pub mod terminate;
pub mod widen;

use std::collections::HashMap;
use std::rc::Rc;

use millrace_object::program::{Program, Role};

use crate::Options;
use crate::collect::Collector;
use crate::domain::Link;
use crate::facts::{Flow, StepId};
use crate::flow::loops::LoopId;
use crate::machine::Machine;
use crate::refuse::Fault;
use crate::state::State;
use execute::Next;
use graph::{Graph, NodeId};
use plan::Plan;
use progress::Progress;
use subsume::includes;

/// A node is placed at the first joining of ways after so many steps; at loop heads always.
const STRIDE: u32 = 8;

/// Most states kept at one place; the older ones of a long unrolled loop only cost time and memory.
const KEPT: usize = 48;

/// How an exploration ended badly.
#[derive(Debug)]
pub struct Failure {
    /// where
    pub step: StepId,
    /// why
    pub why: Why,
    /// branches on the failing way that could have gone both ways
    pub undecided: Vec<StepId>,
    /// loops whose rounds were taken together on the failing way
    pub widened: Vec<LoopId>,
    /// steps that needed a number for a proof, on any way
    pub numbers: Vec<StepId>,
    /// steps visited
    pub visits: u64,
    /// states kept
    pub states: u64,
}

/// What went wrong.
#[derive(Debug)]
pub enum Why {
    /// a rule was broken
    Rule(Fault),
    /// a loop came round without any change in what is known
    Endless,
    /// the budget is spent; the innermost loop that was being unrolled
    Budget(Option<LoopId>),
    /// this loop's rounds may not be taken together: its counter did not prove that it ends
    Uncounted(LoopId),
}

/// What a finished exploration gives.
pub struct Explored {
    /// the facts of all visits
    pub facts: Collector,
    /// steps that needed a number for a proof
    pub numbers: Vec<StepId>,
    /// steps visited
    pub visits: u64,
    /// states kept
    pub states: u64,
}

/// A loop that a way is in.
#[derive(Clone, Debug)]
struct Round {
    of: LoopId,
    /// no two entries into a loop have the same number
    entry: u64,
    /// the last node at its head
    head: Option<NodeId>,
}

/// One way that has still to be followed.
struct Way {
    at: StepId,
    state: State,
    /// the last node on the way
    node: Option<NodeId>,
    /// steps since then
    since: u32,
    /// the loops that it is in, outer before inner
    rounds: Vec<Round>,
    /// the last undecided branch, index into `trail` plus 1
    trail: usize,
}

/// The loops around a place that are taken together, and the names that their counters had when the
/// present round began.
type Anchors = Vec<(LoopId, Vec<Link>)>;

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

/// An exploration under way.
pub struct Explorer<'a> {
    m: Machine<'a>,
    plan: &'a Plan<'a>,
    graph: Graph,
    /// nodes by block
    seen: HashMap<usize, Vec<NodeId>>,
    todo: Vec<Way>,
    /// undecided branches, each with its predecessor
    trail: Vec<(StepId, usize)>,
    progress: Vec<Progress>,
    entries: u64,
    visits: u64,
}

impl<'a> Explorer<'a> {
    /// Before the first step.
    #[must_use]
    pub fn new(
        program: &'a Program,
        role: Role,
        flow: &'a Flow,
        options: &'a Options,
        plan: &'a Plan<'a>,
    ) -> Self {
        let m = Machine {
            program,
            role,
            flow,
            options,
            facts: Collector::new(flow),
            at: StepId(0),
            numbers: Default::default(),
        };
        let progress = plan
            .counters
            .iter()
            .map(|c| Progress::new(c.len()))
            .collect();
        Explorer {
            m,
            plan,
            graph: Graph::default(),
            seen: HashMap::new(),
            todo: Vec::new(),
            trail: Vec::new(),
            progress,
            entries: 0,
            visits: 0,
        }
    }

    /// Follows every way to its end.
    ///
    /// # Errors
    /// The first thing that went wrong.
    pub fn run(mut self) -> Result<Explored, Box<Failure>> {
        self.todo.push(Way {
            at: StepId(0),
            state: State::at_entry(),
            node: None,
            since: STRIDE,
            rounds: Vec::new(),
            trail: 0,
        });
        while let Some(way) = self.todo.pop() {
            if let Err((step, why, node, trail)) = self.follow(way) {
                return Err(self.fail(step, why, node, trail));
            }
        }
        if let Err((l, step)) = terminate::check(&self.graph, self.plan, &self.progress) {
            return Err(self.fail(step, Why::Uncounted(l), None, 0));
        }
        let numbers = self.m.numbers.borrow().iter().copied().collect();
        Ok(Explored {
            facts: self.m.facts,
            numbers,
            visits: self.visits,
            states: self.graph.len() as u64,
        })
    }

    fn fail(&self, step: StepId, why: Why, node: Option<NodeId>, trail: usize) -> Box<Failure> {
        let mut undecided = Vec::new();
        let mut i = trail;
        while let Some(&(at, before)) = i.checked_sub(1).and_then(|i| self.trail.get(i)) {
            undecided.push(at);
            i = before;
        }
        undecided.sort_unstable();
        undecided.dedup();
        let mut widened = Vec::new();
        let mut at = node;
        while let Some(n) = at.and_then(|id| self.graph.node(id)) {
            if let Some(l) = n.widened
                && !widened.contains(&l)
            {
                widened.push(l);
            }
            at = n.parent;
        }
        let numbers = self.m.numbers.borrow().iter().copied().collect();
        Box::new(Failure {
            step,
            why,
            undecided,
            widened,
            numbers,
            visits: self.visits,
            states: self.graph.len() as u64,
        })
    }

    #[expect(
        clippy::type_complexity,
        reason = "what `fail` needs, not worth a name"
    )]
    fn follow(&mut self, mut way: Way) -> Result<(), (StepId, Why, Option<NodeId>, usize)> {
        loop {
            let at = way.at;
            match self.arrive(&mut way) {
                Ok(true) => {
                    self.graph.end(way.node);
                    return Ok(());
                }
                Ok(false) => {}
                Err(why) => return Err((at, why, way.node, way.trail)),
            }
            self.visits += 1;
            way.since += 1;
            if self.visits > self.m.options.max_visits {
                let unrolled = way
                    .rounds
                    .iter()
                    .rev()
                    .map(|r| r.of)
                    .find(|&l| !self.plan.counted(l));
                return Err((at, Why::Budget(unrolled), way.node, way.trail));
            }
            self.m.at = at;
            self.m.facts.before(at, &way.state.frame().regs);
            let next = execute::step(&mut self.m, way.state)
                .map_err(|fault| (at, Why::Rule(fault), way.node, way.trail))?;
            match next {
                Next::To(to, state) => {
                    way.at = to;
                    way.state = state;
                }
                Next::Both(holds, fails) => {
                    self.m.facts.outcomes(at, holds.is_some(), fails.is_some());
                    match (holds, fails) {
                        (Some((to, state)), Some((other, other_state))) => {
                            self.trail.push((at, way.trail));
                            way.trail = self.trail.len();
                            self.graph.fork(way.node);
                            self.todo.push(Way {
                                at: to,
                                state,
                                node: way.node,
                                since: way.since,
                                rounds: way.rounds.clone(),
                                trail: way.trail,
                            });
                            way.at = other;
                            way.state = other_state;
                        }
                        (Some((to, state)), None) | (None, Some((to, state))) => {
                            way.at = to;
                            way.state = state;
                        }
                        (None, None) => {
                            self.graph.end(way.node);
                            return Ok(());
                        }
                    }
                }
                Next::End => {
                    self.graph.end(way.node);
                    return Ok(());
                }
            }
        }
    }

    /// At the start of a block: true if a way that knew less has been here.
    fn arrive(&mut self, way: &mut Way) -> Result<bool, Why> {
        let plan = self.plan;
        let Some(&block) = plan.blocks.of.get(way.at.0) else {
            return Ok(false);
        };
        if plan.blocks.starts.get(block) != Some(&way.at.0) {
            return Ok(false);
        }
        way.rounds.retain(|r| plan.loops.contains(r.of, block));
        let head = plan.loops.at_head(block);
        let irregular = plan.loops.irregular.contains(&block);
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
        if head.is_none() && !irregular && way.since < STRIDE {
            return Ok(false);
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
        if let Some(node) = self.graph.node_mut(id) {
            node.widened = widened;
            node.links = links;
            node.anchors = anchors;
            node.entry = round.as_ref().map_or(0, |r| r.entry);
        }
        if let Some(l) = head
            && let Some(r) = way.rounds.iter_mut().find(|r| r.of == l)
        {
            r.head = Some(id);
        }
        let here = self.seen.entry(block).or_default();
        here.push(id);
        if here.len() > KEPT {
            let oldest = here.remove(0);
            if let Some(n) = self.graph.node_mut(oldest) {
                n.state = None;
            }
        }
        way.node = Some(id);
        way.since = 0;
        Ok(false)
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
        if counted {
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
                        return Err(Why::Endless);
                    }
                    continue;
                }
            }
            let moved = pairs(&node.anchors, at.anchors, &self.progress);
            if includes(&old, &way.state, &moved) {
                node.hits += 1;
                self.graph.edge(way.node, id, at.entering, !complete);
                return Ok(true);
            }
            node.misses += 1;
            // A state that never helps only costs time; long unrolled loops leave many of them.
            if complete && node.misses > 3 * node.hits + 16 {
                node.state = None;
                useless = Some(i);
            }
        }
        if let Some(i) = useless {
            here.remove(i);
        }
        Ok(false)
    }
}
