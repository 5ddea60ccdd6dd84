//! The states that an exploration has kept, and which of them leads to which.

use std::rc::Rc;

use crate::facts::StepId;
use crate::state::State;

/// Index of a node.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct NodeId(pub u32);

/// A state that was kept.
#[derive(Debug)]
pub struct Node {
    /// where
    pub at: StepId,
    /// what was known; none once it has proved useless for pruning
    pub state: Option<Rc<State>>,
    /// the node before it
    pub parent: Option<NodeId>,
    /// ways from here that have not ended
    pending: u32,
    /// ways that ended here because they knew at least as much
    pub hits: u32,
    /// ways that were compared in vain
    pub misses: u32,
}

impl Node {
    /// Whether every way from here has been followed to its end.
    #[must_use]
    pub fn complete(&self) -> bool {
        self.pending == 0
    }
}

/// All nodes of an exploration.
#[derive(Debug, Default)]
pub struct Graph {
    nodes: Vec<Node>,
    edges: Vec<(NodeId, NodeId)>,
}

impl Graph {
    /// How many nodes there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// A node.
    #[must_use]
    pub fn node(&self, id: NodeId) -> Option<&Node> {
        self.nodes.get(id.0 as usize)
    }

    /// A node, to change it.
    pub fn node_mut(&mut self, id: NodeId) -> Option<&mut Node> {
        self.nodes.get_mut(id.0 as usize)
    }

    /// All edges: from a node to the next one on some way.
    #[must_use]
    pub fn edges(&self) -> &[(NodeId, NodeId)] {
        &self.edges
    }

    /// Keeps a state; the way that comes from `parent` goes on from here.
    pub fn add(&mut self, at: StepId, state: Rc<State>, parent: Option<NodeId>) -> NodeId {
        let id = NodeId(self.nodes.len() as u32);
        self.nodes.push(Node {
            at,
            state: Some(state),
            parent,
            pending: 1,
            hits: 0,
            misses: 0,
        });
        self.edge(parent, id);
        id
    }

    /// One more way goes out from here.
    pub fn fork(&mut self, from: Option<NodeId>) {
        if let Some(n) = from.and_then(|id| self.node_mut(id)) {
            n.pending += 1;
        }
    }

    /// A way from here has ended; so has its node, if it was the last, and so on.
    pub fn end(&mut self, from: Option<NodeId>) {
        let mut at = from;
        while let Some(n) = at.and_then(|id| self.node_mut(id)) {
            n.pending = n.pending.saturating_sub(1);
            if n.pending > 0 {
                return;
            }
            at = n.parent;
        }
    }

    /// A way from `from` arrives at `to`.
    pub fn edge(&mut self, from: Option<NodeId>, to: NodeId) {
        if let Some(from) = from {
            self.edges.push((from, to));
        }
    }
}
