//! The proof that the program ends.
//!
//! Every execution is a way through the graph of kept states, which is finite. One that never ends
//! stays, from some point on, inside a strongly connected component. The component's states lie in
//! nested loops of the program; take the outermost loop whose head is among them. If no edge of the
//! component enters that loop from outside, the execution stays inside it, and comes to its head
//! only a bounded number of times if the loop's counter proves so (`progress`). So from some point
//! on it avoids the head, and stays in a component of what is left without it; and so on, until
//! nothing is left.

use std::collections::HashMap;

use super::graph::{Edge, Graph, NodeId};
use super::plan::Plan;
use super::progress::Progress;
use crate::facts::StepId;
use crate::flow::loops::LoopId;

/// Checks that no execution goes on for ever.
///
/// # Errors
/// A loop that could not be shown to end, and where its head is.
pub fn check(
    graph: &Graph,
    plan: &Plan<'_>,
    progress: &[Progress],
) -> Result<(), (LoopId, StepId)> {
    if !graph.cyclic() {
        return Ok(());
    }
    let mut todo: Vec<Vec<NodeId>> = vec![(0..graph.len() as u32).map(NodeId).collect()];
    while let Some(nodes) = todo.pop() {
        let edges = inner_edges(graph, &nodes);
        for component in components(&nodes, &edges) {
            let cyclic = component.len() > 1
                || edges
                    .get(&component[0])
                    .is_some_and(|out| out.iter().any(|e| e.to == component[0]));
            if !cyclic {
                continue;
            }
            let head = outermost(graph, plan, &component)?;
            let own = inner_edges(graph, &component);
            let at_head = |n: NodeId| {
                graph.node(n).is_some_and(|n| {
                    plan.blocks.of.get(n.at.0) == plan.loops.all.get(head).map(|l| &l.head)
                })
            };
            let reentered = own.values().flatten().any(|e| e.entering && at_head(e.to));
            if reentered || !progress.get(head).is_some_and(Progress::proves_end) {
                return Err((
                    head,
                    StepId(
                        plan.loops
                            .all
                            .get(head)
                            .and_then(|l| plan.blocks.starts.get(l.head))
                            .copied()
                            .unwrap_or(0),
                    ),
                ));
            }
            todo.push(component.into_iter().filter(|&n| !at_head(n)).collect());
        }
    }
    Ok(())
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
fn outermost(graph: &Graph, plan: &Plan<'_>, nodes: &[NodeId]) -> Result<LoopId, (LoopId, StepId)> {
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
        (l, step)
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
