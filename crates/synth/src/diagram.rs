//! Interval decision diagrams: functions of fields to actions, hash-consed, so that two are equal if their numbers are.
//!
//! A branch divides a field's values into intervals, each with another diagram; fields come in one order on all paths
//! (ordered, reduced, multi-terminal: Strehl and Thiele, Interval Diagrams for Efficient Symbolic Verification, IEEE TCAD 19(8),
//! 2000). Everything is built by one operation, [`Store::select`].

use std::collections::{HashMap, HashSet};

use crate::field::Var;

mod merge;

pub use merge::{output, outputs};

/// A diagram, by its root.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Id(u32);

/// A node.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Node {
    /// the number of an action
    Leaf(u32),
    /// a choice; never with two equal neighbours
    Branch {
        /// the field
        var: Var,
        /// first value of each interval with its diagram; the first is 0
        kids: Box<[(u64, Id)]>,
    },
}

/// More nodes than this were made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Full;

/// Edges that may be made, if nothing else is said.
pub const MOST_EDGES: usize = 4_000_000;
/// Edges that are looked at, at most: a second or two. Where packets may come to an element again, there may be exponentially many ways, and
/// few edges in the end. Ten nested rewriters look at 50,000.
const MOST_WORK: usize = 20_000_000;

/// All diagrams of a synthesis.
pub struct Store {
    nodes: Vec<Node>,
    ids: HashMap<Node, Id>,
    selected: HashMap<Node, Id>,
    /// for the budgets: edges, and those that were looked at to make them
    edges: usize,
    work: usize,
    most: usize,
}

impl Default for Store {
    fn default() -> Self {
        Self::bounded(MOST_EDGES)
    }
}

/// What a branch on a variable becomes, by the first values of intervals and the diagrams that they lead to.
pub type Branch<'f, E> = dyn FnMut(&mut Store, Var, Vec<(u64, Id)>) -> Result<Id, E> + 'f;

impl Store {
    /// No diagram yet, and room for so many edges.
    #[must_use]
    pub fn bounded(most: usize) -> Self {
        Self {
            nodes: Vec::new(),
            ids: HashMap::new(),
            selected: HashMap::new(),
            edges: 0,
            work: 0,
            most,
        }
    }

    /// Takes so much of the budget of work: edges that could have been looked at meanwhile.
    ///
    /// # Errors
    /// It is spent.
    pub fn spend(&mut self, work: usize) -> Result<(), Full> {
        self.work = self.work.saturating_add(work);
        if self.work > MOST_WORK {
            return Err(Full);
        }
        Ok(())
    }

    /// A node.
    #[must_use]
    pub fn node(&self, id: Id) -> &Node {
        const NONE: Node = Node::Leaf(u32::MAX);
        self.nodes.get(id.0 as usize).unwrap_or(&NONE)
    }

    /// The field that a diagram tests first.
    #[must_use]
    pub fn top(&self, id: Id) -> Option<Var> {
        match self.node(id) {
            Node::Leaf(_) => None,
            Node::Branch { var, .. } => Some(*var),
        }
    }

    /// The diagram of an action.
    pub fn leaf(&mut self, action: u32) -> Id {
        self.intern(Node::Leaf(action))
    }

    fn intern(&mut self, node: Node) -> Id {
        if let Some(id) = self.ids.get(&node) {
            return *id;
        }
        if let Node::Branch { kids, .. } = &node {
            self.edges += kids.len();
        }
        let id = Id(self.nodes.len() as u32);
        self.nodes.push(node.clone());
        self.ids.insert(node, id);
        id
    }

    /// A branch whose field is above those of all its diagrams.
    fn branch(&mut self, var: Var, mut kids: Vec<(u64, Id)>) -> Id {
        kids.dedup_by(|next, before| next.1 == before.1);
        match kids.as_slice() {
            [(_, only)] => *only,
            _ => self.intern(Node::Branch {
                var,
                kids: kids.into(),
            }),
        }
    }

    /// The diagram that is, for each interval of a field, the one given: `kids` by first value, the first 0.
    ///
    /// # Errors
    /// The budget is spent.
    pub fn select(&mut self, var: Var, mut kids: Vec<(u64, Id)>) -> Result<Id, Full> {
        self.spend(kids.len())?;
        kids.dedup_by(|next, before| next.1 == before.1);
        if let [(_, only)] = kids.as_slice() {
            return Ok(*only);
        }
        let asked = Node::Branch {
            var,
            kids: kids.clone().into(),
        };
        if let Some(done) = self.selected.get(&asked) {
            return Ok(*done);
        }
        if self.edges > self.most {
            return Err(Full);
        }
        let above = kids.iter().filter_map(|k| self.top(k.1)).min();
        let made = match above.filter(|top| *top < var) {
            None => {
                let mut flat = Vec::with_capacity(kids.len());
                for (n, (first, id)) in kids.iter().enumerate() {
                    let last = kids.get(n + 1).map_or(u64::MAX, |k| k.0 - 1);
                    match self.node(*id) {
                        Node::Branch { var: own, kids } if *own == var => {
                            flat.extend(clip(kids, *first, last));
                        }
                        _ => flat.push((*first, *id)),
                    }
                }
                self.branch(var, flat)
            }
            Some(top) => {
                let mut cuts: Vec<u64> = Vec::new();
                for (_, id) in &kids {
                    if let Node::Branch { var: own, kids } = self.node(*id)
                        && *own == top
                    {
                        cuts.extend(kids.iter().map(|k| k.0));
                    }
                }
                cuts.sort_unstable();
                cuts.dedup();
                let mut pieces = Vec::with_capacity(cuts.len());
                for cut in cuts {
                    let inner = kids
                        .iter()
                        .map(|(first, id)| (*first, self.at(*id, top, cut)));
                    let inner = inner.collect();
                    pieces.push((cut, self.select(var, inner)?));
                }
                self.branch(top, pieces)
            }
        };
        self.selected.insert(asked, made);
        Ok(made)
    }

    /// A diagram where its first field, if it is `var`, has a value.
    #[must_use]
    pub fn at(&self, id: Id, var: Var, value: u64) -> Id {
        match self.node(id) {
            Node::Branch { var: own, kids } if *own == var => {
                let n = kids.partition_point(|k| k.0 <= value);
                kids.get(n.saturating_sub(1)).map_or(id, |k| k.1)
            }
            _ => id,
        }
    }

    /// `yes` where a field is in one of some intervals (ascending, apart), else `no`.
    ///
    /// # Errors
    /// The budget is spent.
    pub fn within(
        &mut self,
        var: Var,
        intervals: &[(u64, u64)],
        yes: Id,
        no: Id,
    ) -> Result<Id, Full> {
        let mut kids = vec![(0, no)];
        for (low, high) in intervals {
            match kids.last_mut() {
                Some(last) if last.0 == *low => last.1 = yes,
                _ => kids.push((*low, yes)),
            }
            if *high < var.most() {
                kids.push((high + 1, no));
            }
        }
        self.select(var, kids)
    }

    /// The first diagrams on each way down that are no branches on such a variable, each once.
    pub fn below(&self, root: Id, within: impl Fn(Var) -> bool) -> Vec<Id> {
        let mut found = Vec::new();
        let mut seen = HashSet::new();
        let mut stack = vec![root];
        while let Some(id) = stack.pop() {
            if !seen.insert(id) {
                continue;
            }
            match self.node(id) {
                Node::Branch { var, kids } if within(*var) => {
                    stack.extend(kids.iter().map(|k| k.1));
                }
                _ => found.push(id),
            }
        }
        found
    }

    /// Rebuilds a diagram from its leaves up: `leaf` replaces an action, `branch` says what a branch becomes, with its
    /// diagrams replaced.
    ///
    /// # Errors
    /// Those of the functions.
    pub fn rebuild<E>(
        &mut self,
        id: Id,
        memo: &mut HashMap<Id, Id>,
        leaf: &mut dyn FnMut(&mut Self, u32) -> Result<Id, E>,
        branch: &mut Branch<'_, E>,
    ) -> Result<Id, E> {
        if let Some(done) = memo.get(&id) {
            return Ok(*done);
        }
        let made = match self.node(id).clone() {
            Node::Leaf(action) => leaf(self, action)?,
            Node::Branch { var, kids } => {
                let mut new = Vec::with_capacity(kids.len());
                for (first, kid) in &kids {
                    new.push((*first, self.rebuild(*kid, memo, leaf, branch)?));
                }
                branch(self, var, new)?
            }
        };
        memo.insert(id, made);
        Ok(made)
    }

    /// A diagram for packets of which a field is known to lie in an interval.
    ///
    /// # Errors
    /// The budget is spent.
    pub fn known(&mut self, id: Id, var: Var, low: u64, high: u64) -> Result<Id, Full> {
        self.rebuild(
            id,
            &mut HashMap::new(),
            &mut |store, action| Ok(store.leaf(action)),
            &mut |store, own, kids| {
                if own != var {
                    return store.select(own, kids);
                }
                let mut kept = clip(&kids, low, high);
                if let Some(first) = kept.first_mut() {
                    first.0 = 0;
                }
                store.select(own, kept)
            },
        )
    }

    /// All nodes below a root, each before those that it leads to.
    #[must_use]
    pub fn reachable(&self, root: Id) -> Vec<Id> {
        let mut seen = HashSet::new();
        let mut order = Vec::new();
        let mut stack = vec![(root, false)];
        while let Some((id, done)) = stack.pop() {
            if done {
                order.push(id);
                continue;
            }
            if !seen.insert(id) {
                continue;
            }
            stack.push((id, true));
            if let Node::Branch { kids, .. } = self.node(id) {
                stack.extend(kids.iter().rev().map(|k| (k.1, false)));
            }
        }
        order.reverse();
        order
    }

    /// The action for values of fields.
    #[must_use]
    pub fn find(&self, mut id: Id, value: &dyn Fn(Var) -> u64) -> u32 {
        loop {
            match self.node(id) {
                Node::Leaf(action) => return *action,
                Node::Branch { var, .. } => id = self.at(id, *var, value(*var)),
            }
        }
    }
}

/// The part of some intervals between two values.
fn clip(kids: &[(u64, Id)], low: u64, high: u64) -> Vec<(u64, Id)> {
    let mut part = Vec::new();
    for (n, (first, id)) in kids.iter().enumerate() {
        let last = kids.get(n + 1).map_or(u64::MAX, |k| k.0 - 1);
        if last >= low && *first <= high {
            part.push(((*first).max(low), *id));
        }
    }
    part
}
