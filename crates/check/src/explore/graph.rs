//! The states that an exploration has kept, and which of them leads to which.

use std::rc::Rc;

use crate::domain::Link;
use crate::facts::StepId;
use crate::flow::loops::LoopId;
use crate::state::{Base, FrameState, Spill, State};

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
    /// the most work of a path from here to where the next state is kept
    pub work: u64,
    /// bytes of its state that no other node has counted
    bytes: u64,
    /// the state was widened, because this loop has come round
    pub widened: Option<LoopId>,
    /// the state was joined with another one, at this block
    pub joined: Option<usize>,
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
    /// bytes of nodes, edges and states
    bytes: u64,
    /// the most work of a path from the start to the first node
    before: u64,
    /// all work of all paths
    total: u64,
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
        let bytes = self.own_bytes(&state, parent);
        self.bytes += bytes + size_of::<Node>() as u64;
        self.nodes.push(Node {
            at,
            state: Some(state),
            parent,
            pending: 1,
            hits: 0,
            misses: 0,
            work: 0,
            bytes,
            widened: None,
            joined: None,
            links: Vec::new(),
            anchors: Vec::new(),
            entry: 0,
        });
        self.edge(parent, id, entering, false);
        id
    }

    /// Bytes of a state that are not its parent's: frames that nothing was written to are shared.
    fn own_bytes(&self, state: &State, parent: Option<NodeId>) -> u64 {
        let parent = parent.and_then(|id| self.node(id)?.state.as_ref());
        let frame = |(i, frame): (usize, &Rc<FrameState>)| {
            let shared = parent.and_then(|p| p.frames.get(i));
            match shared.is_some_and(|s| Rc::ptr_eq(s, frame)) {
                true => 0,
                false => size_of::<FrameState>() + frame.spills.len() * size_of::<Spill>(),
            }
        };
        let frames: usize = state.frames.iter().enumerate().map(frame).sum();
        let bases = state.bases.len() * size_of::<Base>();
        (size_of::<State>() + frames + bases) as u64
    }

    /// What is kept beside a node's state: names of counters, its own and those of the loops around.
    pub fn name(&mut self, id: NodeId, links: Vec<Link>, anchors: Anchors) {
        let all = anchors.iter().map(|(_, links)| links.len());
        let links_of_all = links.len() + all.sum::<usize>();
        self.bytes += (links_of_all * size_of::<Link>() + size_of_val(&*anchors)) as u64;
        if let Some(node) = self.node_mut(id) {
            (node.links, node.anchors) = (links, anchors);
        }
    }

    /// Forgets a node's state, which nothing is compared with any more.
    pub fn drop_state(&mut self, id: NodeId) {
        if let Some(n) = self.nodes.get_mut(id.0 as usize) {
            n.state = None;
            self.bytes = self.bytes.saturating_sub(std::mem::take(&mut n.bytes));
        }
    }

    /// Bytes of all that is kept, about.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// A path has done so much since this node.
    pub fn works(&mut self, from: Option<NodeId>, work: u64) {
        self.total = self.total.saturating_add(work);
        let most = match from {
            Some(id) => self.nodes.get_mut(id.0 as usize).map(|n| &mut n.work),
            None => Some(&mut self.before),
        };
        if let Some(most) = most {
            *most = work.max(*most);
        }
    }

    /// The most work of a path from the start to the first node.
    #[must_use]
    pub fn work_before(&self) -> u64 {
        self.before
    }

    /// The work of all paths together.
    #[must_use]
    pub fn all_work(&self) -> u64 {
        self.total
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
            self.bytes += size_of::<Edge>() as u64;
            self.edges.push(Edge { from, to, entering });
        }
    }
}
