//! Follows every way through a flow, one at a time, until each ends, or arrives where a way that
//! knew less has been before.
//!
//! At joins the state is kept as a node, after [`forget`] has dropped what no later proof is
//! expected to need. At the head of a loop with a counter the state is also widened, so that one
//! round stands for all; that the loop ends is then proved apart, by [`terminate`].

pub mod arrive;
pub mod counted_down;
pub mod execute;
pub mod forget;
pub mod graph;
pub mod join;
pub mod plan;
pub mod progress;
pub mod subsume;
pub mod terminate;
pub mod widen;

use std::collections::{BTreeMap, HashMap};

use millrace_object::program::{Program, Role};

use crate::Options;
use crate::budget::{Budget, Spent, Watch};
use crate::collect::Collector;
use crate::facts::{Flow, FrameId, StepId};
use crate::flow::loops::LoopId;
use crate::machine::Machine;
use crate::refuse::Fault;
use crate::rule::Rule;
use crate::state::{FrameState, State};
use arrive::STRIDE;
use execute::Next;
use graph::{Graph, NodeId};
use plan::Plan;
use progress::Progress;
use terminate::Endless;

/// Bytes of a path that waits, about: its active frame is its own, most others are not.
const WAITING: u64 = (size_of::<Way>() + size_of::<FrameState>() + 4096) as u64;

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
    /// blocks at whose start states were joined on the failing way
    pub joined: Vec<usize>,
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
    /// the rounds of loops, with what is done in each, are too much work
    Rounds,
    /// the object's budget of time or memory is used up
    Spent(Spent),
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
    /// stack bytes that are read before they are written, where the plan asks for them
    pub unwritten: BTreeMap<FrameId, [u64; 8]>,
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
    /// the work of these steps
    work: u64,
    /// the loops that it is in, outer before inner
    rounds: Vec<Round>,
    /// the last undecided branch, index into `trail` plus 1
    trail: usize,
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
    most: u64,
    watch: Watch,
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
        budget: Budget,
    ) -> Self {
        let m = Machine {
            program,
            role,
            flow,
            options,
            facts: Collector::new(flow, options.claims),
            at: StepId(0),
            work: 1,
            numbers: Default::default(),
            gathers: plan.gathers,
            unwritten: Default::default(),
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
            most: 0,
            watch: Watch::new(budget),
        }
    }

    /// Follows every way to its end, in at most so many steps.
    ///
    /// # Errors
    /// The first thing that went wrong.
    pub fn run(mut self, most: u64) -> Result<Explored, Box<Failure>> {
        self.most = most;
        self.todo.push(Way {
            at: StepId(0),
            state: State::at_entry(),
            node: None,
            since: STRIDE,
            work: 0,
            rounds: Vec::new(),
            trail: 0,
        });
        while let Some(way) = self.todo.pop() {
            if let Err((step, why, node, trail)) = self.follow(way) {
                return Err(self.fail(step, why, node, trail));
            }
        }
        match terminate::check(&self.graph, self.plan, &self.progress, &mut self.watch) {
            Ok(()) => {}
            Err(Endless::Spent(spent)) => {
                return Err(self.fail(StepId(0), Why::Spent(spent), None, 0));
            }
            Err(Endless::Loop(..)) if self.m.off(Rule::UnboundedLoop) => {}
            Err(Endless::Rounds(_)) if self.m.off(Rule::TooManyRounds) => {}
            Err(Endless::Loop(l, step)) => {
                return Err(self.fail(step, Why::Uncounted(l), None, 0));
            }
            Err(Endless::Rounds(step)) => {
                return Err(self.fail(step, Why::Rounds, None, 0));
            }
        }
        let numbers = self.m.numbers.borrow().iter().copied().collect();
        Ok(Explored {
            facts: self.m.facts,
            numbers,
            visits: self.visits,
            states: self.graph.len() as u64,
            unwritten: self.m.unwritten.into_inner(),
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
        let (mut widened, mut joined) = (Vec::new(), Vec::new());
        let mut at = node;
        while let Some(n) = at.and_then(|id| self.graph.node(id)) {
            if let Some(l) = n.widened
                && !widened.contains(&l)
            {
                widened.push(l);
            }
            joined.extend(n.joined);
            at = n.parent;
        }
        let numbers = self.m.numbers.borrow().iter().copied().collect();
        Box::new(Failure {
            step,
            why,
            undecided,
            widened,
            joined,
            numbers,
            visits: self.visits,
            states: self.graph.len() as u64,
        })
    }

    /// Whether the object's budget is used up: by the states that are kept and by the paths that wait, which are the
    /// same on every machine, and by what the process takes.
    fn spent(&mut self) -> Option<Spent> {
        let waiting = self.todo.len() as u64 * WAITING;
        self.watch.holds(self.graph.bytes().saturating_add(waiting))
    }

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
            if let Some(spent) = self.spent() {
                return Err((at, Why::Spent(spent), way.node, way.trail));
            }
            if self.visits > self.most {
                let unrolled = way
                    .rounds
                    .iter()
                    .rev()
                    .map(|r| r.of)
                    .find(|&l| !self.plan.counted(l));
                return Err((at, Why::Budget(unrolled), way.node, way.trail));
            }
            self.m.at = at;
            self.m.work = 1;
            self.m.facts.before(at, way.state.frame());
            let next = execute::step(&mut self.m, way.state)
                .map_err(|fault| (at, Why::Rule(fault), way.node, way.trail))?;
            way.work = way.work.saturating_add(self.m.work);
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
                                work: way.work,
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
                            self.graph.works(way.node, way.work);
                            self.graph.end(way.node);
                            return Ok(());
                        }
                    }
                }
                Next::End => {
                    self.graph.works(way.node, way.work);
                    self.graph.end(way.node);
                    return Ok(());
                }
            }
        }
    }
}
