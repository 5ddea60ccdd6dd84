//! Follows every way through a flow, one at a time, until each ends, or arrives where a way that
//! knew less has been before.

pub mod execute;
pub mod graph;
pub mod subsume;

use std::collections::HashMap;
use std::rc::Rc;

use millrace_object::program::Program;

use crate::Options;
use crate::collect::Collector;
use crate::facts::{Flow, StepId};
use crate::machine::Machine;
use crate::refuse::Fault;
use crate::state::State;
use execute::Next;
use graph::{Graph, NodeId};
use subsume::includes;

/// A node is placed at the first joining of ways after so many steps; at loop heads always.
const STRIDE: u32 = 8;

/// How an exploration ended badly.
#[derive(Debug)]
pub struct Failure {
    /// where
    pub step: StepId,
    /// why
    pub fault: Fault,
}

/// One way that has still to be followed.
struct Way {
    at: StepId,
    state: State,
    /// the last node on the way
    node: Option<NodeId>,
    /// steps since then
    since: u32,
}

/// What exploring needs to know about the flow's shape.
pub struct Shape {
    /// more than one way leads here
    pub joins: Vec<bool>,
    /// a loop begins here
    pub heads: Vec<bool>,
}

/// An exploration under way.
pub struct Explorer<'a> {
    m: Machine<'a>,
    shape: &'a Shape,
    graph: Graph,
    /// nodes by step
    seen: HashMap<StepId, Vec<NodeId>>,
    todo: Vec<Way>,
    visits: u64,
}

/// What a finished exploration gives.
pub struct Explored {
    /// the facts of all visits
    pub facts: Collector,
    /// steps visited
    pub visits: u64,
    /// states kept
    pub states: u64,
}

impl<'a> Explorer<'a> {
    /// Before the first step.
    #[must_use]
    pub fn new(
        program: &'a Program,
        flow: &'a Flow,
        options: &'a Options,
        shape: &'a Shape,
    ) -> Self {
        let m = Machine {
            program,
            flow,
            options,
            facts: Collector::new(flow),
            at: StepId(0),
        };
        Explorer {
            m,
            shape,
            graph: Graph::default(),
            seen: HashMap::new(),
            todo: Vec::new(),
            visits: 0,
        }
    }

    /// Follows every way to its end.
    ///
    /// # Errors
    /// The first broken rule, or `too-complex`.
    pub fn run(mut self) -> Result<Explored, Failure> {
        self.todo.push(Way {
            at: StepId(0),
            state: State::at_entry(),
            node: None,
            since: STRIDE,
        });
        while let Some(way) = self.todo.pop() {
            self.follow(way)?;
        }
        Ok(Explored {
            facts: self.m.facts,
            visits: self.visits,
            states: self.graph.len() as u64,
        })
    }

    fn follow(&mut self, mut way: Way) -> Result<(), Failure> {
        loop {
            let at = way.at;
            if self.arrive(&mut way) {
                self.graph.end(way.node);
                return Ok(());
            }
            self.visits += 1;
            way.since += 1;
            if self.visits > self.m.options.max_visits {
                return Err(Failure {
                    step: at,
                    fault: self.too_complex(),
                });
            }
            self.m.at = at;
            self.m.facts.before(at, &way.state.frame().regs);
            let next = execute::step(&mut self.m, way.state)
                .map_err(|fault| Failure { step: at, fault })?;
            match next {
                Next::To(to, state) => {
                    way.at = to;
                    way.state = state;
                }
                Next::Both(holds, fails) => {
                    self.m.facts.outcomes(at, holds.is_some(), fails.is_some());
                    match (holds, fails) {
                        (Some((to, state)), Some((other, other_state))) => {
                            self.graph.fork(way.node);
                            self.todo.push(Way {
                                at: to,
                                state,
                                node: way.node,
                                since: way.since,
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

    /// Where ways join: true if a way that knew less has been here.
    fn arrive(&mut self, way: &mut Way) -> bool {
        let at = way.at;
        let head = self.shape.heads.get(at.0).copied().unwrap_or(false);
        let join = self.shape.joins.get(at.0).copied().unwrap_or(false);
        if !head && !join {
            return false;
        }
        way.state.tidy();
        let here = self.seen.entry(at).or_default();
        let mut drop = None;
        for (i, &id) in here.iter().enumerate().rev() {
            let Some(node) = self.graph.node_mut(id) else {
                continue;
            };
            let Some(old) = node.state.clone() else {
                continue;
            };
            if !node.complete() {
                continue;
            }
            if includes(&old, &way.state) {
                node.hits += 1;
                self.graph.edge(way.node, id);
                return true;
            }
            node.misses += 1;
            // A state that never helps only costs time; long unrolled loops leave many of them.
            if node.misses > 3 * node.hits + 8 {
                node.state = None;
                drop = Some(i);
            }
        }
        if let Some(i) = drop {
            here.remove(i);
        }
        if head || way.since >= STRIDE {
            let id = self.graph.add(at, Rc::new(way.state.clone()), way.node);
            here.push(id);
            way.node = Some(id);
            way.since = 0;
        }
        false
    }

    fn too_complex(&self) -> Fault {
        Fault::new(
            "too-complex",
            format!(
                "after {} steps not every way through the program had been followed to its end",
                self.m.options.max_visits
            ),
            "Give loops a smaller constant bound, or split the program into fewer combinations of conditions.",
        )
    }
}
