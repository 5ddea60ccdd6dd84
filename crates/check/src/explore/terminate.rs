//! The proof that the program ends.
//!
//! Every execution is a way through the graph of kept states, which is finite. One that never ends
//! stays, from some point on, inside a strongly connected component. The component's states lie in
//! nested loops of the program; take the outermost loop whose head is among them. If no edge of the
//! component enters that loop from outside, the execution stays inside it, and comes to its head
//! only a bounded number of times if the loop's counter proves so (`progress`). So from some point
//! on it avoids the head, and stays in a component of what is left without it; and so on, until
//! nothing is left. The same walk bounds the rounds that an execution makes: a stay in a component is as
//! many rounds of its loop as the counter allows, and in each those of the longest way through what is
//! left. Loops that were followed round by round have no cycle here; their rounds are within the budget
//! of the exploration.

use std::collections::HashMap;

use super::budget;
use super::graph::{Edge, Graph, NodeId};
use super::plan::Plan;
use super::progress::Progress;
use crate::facts::StepId;
use crate::flow::loops::LoopId;
use millrace_object::insn::ROUNDS;

/// The most rounds of loops that one execution may make, those of loops within loops multiplied: 2^32
/// rounds of a nanosecond are four seconds.
pub const MOST_ROUNDS: u64 = 1 << 32;

/// Loops within loops beyond this are refused like too many rounds.
const MAX_NESTING: u32 = 64;

/// What keeps an execution from being bounded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Endless {
    /// a loop that could not be shown to end, and where its head is
    Loop(LoopId, StepId),
    /// a loop whose rounds, with those of the loops in it and around it, are too many
    Rounds(StepId),
}

/// Checks that no execution goes on for ever, nor nearly so.
///
/// # Errors
/// What it could stay in.
pub fn check(graph: &Graph, plan: &Plan<'_>, progress: &[Progress]) -> Result<(), Endless> {
    if !graph.cyclic() {
        return Ok(());
    }
    let nodes: Vec<NodeId> = (0..graph.len() as u32).map(NodeId).collect();
    let bound = Bound {
        graph,
        plan,
        progress,
    };
    bound.longest(&nodes, 0).map(|_| ())
}

struct Bound<'a> {
    graph: &'a Graph,
    plan: &'a Plan<'a>,
    progress: &'a [Progress],
}

impl Bound<'_> {
    /// The most rounds that a way inside these makes. Between components there is no way back, so it
    /// is the longest way through them, each with the rounds that one stay in it can make.
    fn longest(&self, nodes: &[NodeId], nesting: u32) -> Result<u64, Endless> {
        let edges = inner_edges(self.graph, nodes);
        let mut beyond: HashMap<NodeId, u64> = HashMap::new();
        let mut longest = 0;
        // Components come in an order in which those that a way can go on to are before it.
        for component in components(nodes, &edges) {
            let out = component.iter().filter_map(|n| edges.get(n)).flatten();
            let after = out.filter_map(|e| beyond.get(&e.to)).max().copied();
            let own = self.stay(&component, &edges, nesting)?;
            let all = own.saturating_add(after.unwrap_or(0));
            if all > MOST_ROUNDS {
                let inside = component.first().and_then(|&n| self.graph.node(n));
                return Err(Endless::Rounds(inside.map_or(StepId(0), |n| n.at)));
            }
            beyond.extend(component.iter().map(|&n| (n, all)));
            longest = longest.max(all);
        }
        Ok(longest)
    }

    /// The most rounds that one stay in a component makes.
    fn stay(
        &self,
        component: &[NodeId],
        edges: &HashMap<NodeId, Vec<Edge>>,
        nesting: u32,
    ) -> Result<u64, Endless> {
        let cyclic = component.len() > 1
            || component.iter().any(|n| {
                edges
                    .get(n)
                    .is_some_and(|out| out.iter().any(|e| e.to == *n))
            });
        if !cyclic {
            return Ok(0);
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
        let own = inner_edges(graph, component);
        let reentered = own.values().flatten().any(|e| e.entering && at_head(e.to));
        let counter = self.progress.get(head).and_then(Progress::rounds);
        let budget = plan.budgeted(head).map(|_| ROUNDS as u64);
        let rounds = counter.into_iter().chain(budget).min();
        let (false, Some(rounds)) = (reentered, rounds) else {
            return Err(Endless::Loop(head, step));
        };
        if let Some(all) = budget::rounds(graph, plan, component, head) {
            return Ok(all);
        }
        if nesting == MAX_NESTING {
            return Err(Endless::Rounds(step));
        }
        let rest: Vec<NodeId> = component.iter().copied().filter(|&n| !at_head(n)).collect();
        let inside = self.longest(&rest, nesting + 1)?;
        // It may begin behind the head, and then comes to it once a round.
        let all = inside
            .saturating_add(1)
            .saturating_mul(rounds.saturating_add(1));
        if all > MOST_ROUNDS {
            return Err(Endless::Rounds(step));
        }
        Ok(all)
    }
}

fn inner_edges(graph: &Graph, nodes: &[NodeId]) -> HashMap<NodeId, Vec<Edge>> {
    let inside: std::collections::HashSet<NodeId> = nodes.iter().copied().collect();
    let mut out: HashMap<NodeId, Vec<Edge>> = HashMap::new();
    for e in graph.edges() {
        if inside.contains(&e.from) && inside.contains(&e.to) {
            out.entry(e.from).or_default().push(*e);
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
fn components(nodes: &[NodeId], edges: &HashMap<NodeId, Vec<Edge>>) -> Vec<Vec<NodeId>> {
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
