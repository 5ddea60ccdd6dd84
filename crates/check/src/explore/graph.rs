//! The states that an exploration has kept, and which of them leads to which.

use std::rc::Rc;

use crate::domain::Link;
use crate::facts::StepId;
use crate::flow::loops::LoopId;
use crate::state::State;

/// The loops around a place that are taken together, and the names that their counters had when the
/// present round began.
pub type Anchors = Vec<(LoopId, Vec<Link>)>;

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
    /// the state was widened, because this loop has come round
    pub widened: Option<LoopId>,
    /// at a loop's head: how the counters are named here
    pub links: Vec<Link>,
    /// the loops around, and how their counters were named when the round began
    pub anchors: Anchors,
    /// at a loop's head: which entry into the loop this belongs to
    pub entry: u64,
}

/// One way from a node to the next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Edge {
    /// from
    pub from: NodeId,
    /// to
    pub to: NodeId,
    /// `to` is at the head of a loop, and the way comes from outside it
    pub entering: bool,
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
    edges: Vec<Edge>,
    /// some edge goes back to a node that is not finished
    cyclic: bool,
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
    pub fn edges(&self) -> &[Edge] {
        &self.edges
    }

    /// Whether there may be cycles.
    #[must_use]
    pub fn cyclic(&self) -> bool {
        self.cyclic
    }

    /// Keeps a state; the way that comes from `parent` goes on from here.
    pub fn add(
        &mut self,
        at: StepId,
        state: Rc<State>,
        parent: Option<NodeId>,
        entering: bool,
    ) -> NodeId {
        let id = NodeId(self.nodes.len() as u32);
        self.nodes.push(Node {
            at,
            state: Some(state),
            parent,
            pending: 1,
            hits: 0,
            misses: 0,
            widened: None,
            links: Vec::new(),
            anchors: Vec::new(),
            entry: 0,
        });
        self.edge(parent, id, entering, false);
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

    /// A way from `from` arrives at `to`; `back`: which is not finished.
    pub fn edge(&mut self, from: Option<NodeId>, to: NodeId, entering: bool, back: bool) {
        self.cyclic |= back;
        if let Some(from) = from {
            self.edges.push(Edge { from, to, entering });
        }
    }
}
