//! The proof that the program ends.
//!
//! Every execution is a way through the graph of kept states, which is finite. One that never ends
//! stays, from some point on, inside a strongly connected component. The component's states lie in
//! nested loops of the program; take the outermost loop whose head is among them. If no edge of the
//! component enters that loop from outside, the execution stays inside it, and comes to its head
//! only a bounded number of times if the loop's counter proves so (`progress`). So from some point
//! on it avoids the head, and stays in a component of what is left without it; and so on, until
//! nothing is left. The same walk bounds the work of an execution: a stay in a component is as many rounds of its loop
//! as the counter allows, and in each the work of the longest way through what is left. Work is counted in steps; a
//! call of a helper is as many more as it touches bytes (`rules/calls`), so that rounds weigh what their body costs.
//! Loops that were followed round by round have no cycle here; their rounds are states of their own.

use std::collections::{HashMap, HashSet};

use super::counted_down;
use super::graph::{Edge, Graph, NodeId};
use super::plan::Plan;
use super::progress::Progress;
use crate::budget::{Spent, Watch};
use crate::facts::StepId;
use crate::flow::loops::LoopId;
use millrace_object::insn::ROUNDS;

/// The most work of one execution: 2^34 steps, or bytes that helpers touch, are a few seconds.
pub const MOST_WORK: u64 = 1 << 34;

/// Loops within loops beyond this are refused like too much work.
const MAX_NESTING: u32 = 64;

/// What keeps an execution from being bounded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Endless {
    /// a loop that could not be shown to end, and where its head is
    Loop(LoopId, StepId),
    /// a loop of which the rounds, with what is done in each, are too much work
    Rounds(StepId),
    /// the object's budget is used up
    Spent(Spent),
}

/// Edges by the node that they come from.
type Edges = HashMap<NodeId, Vec<Edge>>;

/// Checks that no execution goes on for ever, nor nearly so.
///
/// # Errors
/// What it could stay in.
pub fn check(
    graph: &Graph,
    plan: &Plan<'_>,
    progress: &[Progress],
    watch: &mut Watch,
) -> Result<(), Endless> {
    if !graph.cyclic() && graph.all_work() <= MOST_WORK {
        return Ok(());
    }
    let nodes: Vec<NodeId> = (0..graph.len() as u32).map(NodeId).collect();
    let mut edges = Edges::new();
    for e in graph.edges() {
        edges.entry(e.from).or_default().push(*e);
    }
    let mut bound = Bound {
        graph,
        plan,
        progress,
        watch,
    };
    let longest = bound.longest(&nodes, &edges, 0)?;
    match longest.saturating_add(graph.work_before()) > MOST_WORK {
        true => Err(Endless::Rounds(StepId(0))),
        false => Ok(()),
    }
}

struct Bound<'a> {
    graph: &'a Graph,
    plan: &'a Plan<'a>,
    progress: &'a [Progress],
    watch: &'a mut Watch,
}

impl Bound<'_> {
    /// The most work of a way inside these. Between components there is no way back, so it is the longest way through
    /// them, each with the work of one stay in it.
    fn longest(&mut self, nodes: &[NodeId], edges: &Edges, nesting: u32) -> Result<u64, Endless> {
        let mut beyond: HashMap<NodeId, u64> = HashMap::new();
        let mut longest = 0;
        // Components come in an order in which those that a way can go on to are before it.
        for component in components(nodes, edges) {
            if let Some(spent) = self.watch.spent() {
                return Err(Endless::Spent(spent));
            }
            let out = component.iter().filter_map(|n| edges.get(n)).flatten();
            let after = out.filter_map(|e| beyond.get(&e.to)).max().copied();
            let own = self.stay(&component, edges, nesting)?;
            let all = own.saturating_add(after.unwrap_or(0));
            if all > MOST_WORK {
                let inside = component.first().and_then(|&n| self.graph.node(n));
                return Err(Endless::Rounds(inside.map_or(StepId(0), |n| n.at)));
            }
            beyond.extend(component.iter().map(|&n| (n, all)));
            longest = longest.max(all);
        }
        Ok(longest)
    }

    /// The work from a node to the next one.
    fn work(&self, n: NodeId) -> u64 {
        self.graph.node(n).map_or(0, |n| n.work)
    }

    /// The most work of one stay in a component.
    fn stay(&mut self, component: &[NodeId], edges: &Edges, nesting: u32) -> Result<u64, Endless> {
        let cyclic = component.len() > 1
            || component.iter().any(|n| {
                edges
                    .get(n)
                    .is_some_and(|out| out.iter().any(|e| e.to == *n))
            });
        if !cyclic {
            return Ok(component.iter().map(|&n| self.work(n)).sum());
        }
        let (graph, plan) = (self.graph, self.plan);
        let head = outermost(graph, plan, component)?;
        let at = plan.loops.all.get(head).map(|l| l.head);
        let step = at.and_then(|b| plan.blocks.starts.get(b)).copied();
        let step = StepId(step.unwrap_or(0));
        let at_head = |n: NodeId| {
            graph
                .node(n)
                .is_some_and(|n| plan.blocks.of.get(n.at.0).copied() == at)
        };
        let own = within(edges, component, |_| true);
        let reentered = own.values().flatten().any(|e| e.entering && at_head(e.to));
        let counter = self.progress.get(head).and_then(Progress::rounds);
        let budget = plan.budgeted(head).map(|_| ROUNDS as u64);
        let rounds = counter.into_iter().chain(budget).min();
        let (false, Some(rounds)) = (reentered, rounds) else {
            return Err(Endless::Loop(head, step));
        };
        if nesting == MAX_NESTING {
            return Err(Endless::Rounds(step));
        }
        let (inside, rounds) = match counted_down::rounds(graph, plan, component, head) {
            // From one arrival at a head to the next.
            Some(rounds) => {
                let heads = |n: NodeId| {
                    let block = graph.node(n).and_then(|n| plan.blocks.of.get(n.at.0));
                    block.is_some_and(|&b| plan.loops.at_head(b).is_some())
                };
                let between = within(&own, component, |e| !heads(e.to));
                (self.longest(component, &between, nesting + 1)?, rounds)
            }
            // It may begin behind the head, and then comes to it once a round.
            None => {
                let heads = component.iter().filter(|&&n| at_head(n));
                let head = heads.map(|&n| self.work(n)).max().unwrap_or(0);
                let rest: Vec<NodeId> =
                    component.iter().copied().filter(|&n| !at_head(n)).collect();
                let rest_edges = within(&own, &rest, |_| true);
                let inside = self.longest(&rest, &rest_edges, nesting + 1)?;
                (inside.saturating_add(head), rounds.saturating_add(1))
            }
        };
        let all = inside.saturating_mul(rounds);
        if all > MOST_WORK {
            return Err(Endless::Rounds(step));
        }
        Ok(all)
    }
}

/// Those edges between these nodes that are wanted.
fn within(edges: &Edges, nodes: &[NodeId], wanted: impl Fn(&Edge) -> bool) -> Edges {
    let inside: HashSet<NodeId> = nodes.iter().copied().collect();
    let mut out = Edges::new();
    for n in nodes {
        let all = edges.get(n).into_iter().flatten();
        let own: Vec<Edge> = all
            .filter(|e| inside.contains(&e.to) && wanted(e))
            .copied()
            .collect();
        if !own.is_empty() {
            out.insert(*n, own);
        }
    }
    out
}

/// The loop whose head is among the nodes and that contains them all.
fn outermost(graph: &Graph, plan: &Plan<'_>, nodes: &[NodeId]) -> Result<LoopId, Endless> {
    let block = |n: NodeId| {
        graph
            .node(n)
            .and_then(|n| plan.blocks.of.get(n.at.0))
            .copied()
    };
    let blocks: Vec<usize> = nodes.iter().filter_map(|&n| block(n)).collect();
    let found = blocks
        .iter()
        .filter_map(|&b| plan.loops.at_head(b))
        .find(|&l| blocks.iter().all(|&b| plan.loops.contains(l, b)));
    found.ok_or_else(|| {
        let step = nodes
            .first()
            .and_then(|&n| graph.node(n))
            .map_or(StepId(0), |n| n.at);
        let l = blocks
            .iter()
            .find_map(|&b| plan.loops.at_head(b))
            .unwrap_or(0);
        Endless::Loop(l, step)
    })
}

/// Strongly connected components, after Tarjan, "Depth-First Search and Linear Graph Algorithms"
/// (1972), without recursion.
fn components(nodes: &[NodeId], edges: &Edges) -> Vec<Vec<NodeId>> {
    #[derive(Clone, Copy)]
    struct Mark {
        index: u32,
        low: u32,
        on_stack: bool,
    }
    let mut marks: HashMap<NodeId, Mark> = HashMap::new();
    let mut stack: Vec<NodeId> = Vec::new();
    let mut found = Vec::new();
    let mut next = 0;
    let none: Vec<Edge> = Vec::new();
    for &root in nodes {
        if marks.contains_key(&root) {
            continue;
        }
        let mut walk: Vec<(NodeId, usize)> = vec![(root, 0)];
        while let Some((n, i)) = walk.pop() {
            if i == 0 {
                marks.insert(
                    n,
                    Mark {
                        index: next,
                        low: next,
                        on_stack: true,
                    },
                );
                next += 1;
                stack.push(n);
            }
            let out = edges.get(&n).unwrap_or(&none);
            if let Some(e) = out.get(i) {
                walk.push((n, i + 1));
                match marks.get(&e.to).copied() {
                    None => walk.push((e.to, 0)),
                    Some(m) if m.on_stack => {
                        if let Some(own) = marks.get_mut(&n) {
                            own.low = own.low.min(m.index);
                        }
                    }
                    Some(_) => {}
                }
                continue;
            }
            let Some(own) = marks.get(&n).copied() else {
                continue;
            };
            if own.low == own.index {
                let mut component = Vec::new();
                while let Some(m) = stack.pop() {
                    if let Some(mark) = marks.get_mut(&m) {
                        mark.on_stack = false;
                    }
                    component.push(m);
                    if m == n {
                        break;
                    }
                }
                found.push(component);
            }
            if let Some(&(parent, _)) = walk.last()
                && let Some(p) = marks.get_mut(&parent)
            {
                p.low = p.low.min(own.low);
            }
        }
    }
    found
}
