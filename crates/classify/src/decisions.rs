//! A decision diagram that is given as such, in place of rules: what synthesis made of filters.
//!
//! Nodes come before those that lead to them, so that no diagram has a way without end, whoever wrote it.

use crate::diagram::{Diagrams, Edge, Ref};

/// The most edges of a diagram.
pub const MOST_EDGES: usize = 1 << 24;

/// Why nodes are no diagram.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum DecisionError {
    /// the intervals of a node are not in ascending order, or do not end with the greatest number
    #[error("the intervals of a node of a diagram are not all numbers in ascending order")]
    Intervals,
    /// a node leads to one that is not there, or that tests the same word or an earlier one
    #[error("a node of a diagram leads to none that tests a later word")]
    Target,
    /// a class that does not exist
    #[error("a diagram has the class {0}, of {1}")]
    Class(u32, u32),
    /// it is too large
    #[error("a diagram of more than {MOST_EDGES} edges")]
    Many,
    /// the order of words is none
    #[error("a diagram tests a word twice, or one that the key does not have")]
    Order,
}

/// A diagram: the last node is where a key begins.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Decisions {
    order: Vec<usize>,
    classes: u32,
    nodes: Vec<(u8, Box<[Edge]>)>,
    edges: usize,
}

impl Decisions {
    /// No node yet; levels test the key's words in this order, and classes are below `classes`.
    ///
    /// # Errors
    /// [`DecisionError::Order`] where words are not each once and below `words`.
    pub fn new(order: Vec<usize>, words: usize, classes: u32) -> Result<Self, DecisionError> {
        let mut seen = vec![false; words];
        for word in &order {
            match seen.get_mut(*word) {
                Some(seen) if !*seen => *seen = true,
                _ => return Err(DecisionError::Order),
            }
        }
        Ok(Self {
            order,
            classes,
            nodes: Vec::new(),
            edges: 0,
        })
    }

    /// Adds a node that tests the word of a level; it leads to classes ([`Ref::terminal`]) and nodes that were added before.
    ///
    /// # Errors
    /// [`DecisionError`] where it does not; nothing is added then.
    pub fn push(&mut self, level: u8, edges: Vec<Edge>) -> Result<Ref, DecisionError> {
        if usize::from(level) >= self.order.len() {
            return Err(DecisionError::Order);
        }
        let ascending = edges.windows(2).all(|w| match w {
            [a, b] => a.last < b.last,
            _ => true,
        });
        if !ascending || edges.last().is_none_or(|e| e.last != u32::MAX) {
            return Err(DecisionError::Intervals);
        }
        if self.edges + edges.len() > MOST_EDGES {
            return Err(DecisionError::Many);
        }
        for edge in &edges {
            match (edge.to.number(), self.nodes.get(edge.to.index())) {
                (Some(class), _) if class >= self.classes => {
                    return Err(DecisionError::Class(class, self.classes));
                }
                (Some(_), _) => {}
                (None, Some((below, _))) if *below > level => {}
                _ => return Err(DecisionError::Target),
            }
        }
        self.edges += edges.len();
        self.nodes.push((level, edges.into()));
        Ok(Ref::node(self.nodes.len() as u32 - 1))
    }

    /// Levels: which word each tests.
    #[must_use]
    pub fn order(&self) -> &[usize] {
        &self.order
    }

    /// Its nodes with their levels, each behind those that it leads to.
    pub fn nodes(&self) -> impl ExactSizeIterator<Item = (u8, &[Edge])> {
        self.nodes.iter().map(|(level, edges)| (*level, &**edges))
    }

    /// The class of a key in words; 0 of a diagram without nodes.
    #[must_use]
    pub fn find(&self, words: &[u32]) -> u32 {
        let mut at = self.nodes.last();
        while let Some((level, edges)) = at {
            let word = self.order.get(usize::from(*level)).copied().unwrap_or(0);
            let x = words.get(word).copied().unwrap_or(0);
            let found = edges.partition_point(|e| e.last < x);
            let Some(edge) = edges.get(found) else {
                return 0;
            };
            if let Some(class) = edge.to.number() {
                return class;
            }
            at = self.nodes.get(edge.to.index());
        }
        0
    }

    /// The same in an arena; equal nodes are one there.
    #[must_use]
    pub fn diagram(&self) -> (Diagrams, Ref) {
        let mut arena = Diagrams::new();
        let mut made: Vec<Ref> = Vec::with_capacity(self.nodes.len());
        for (level, edges) in &self.nodes {
            let to = |to: Ref| match to.number() {
                Some(_) => to,
                None => made.get(to.index()).copied().unwrap_or(Ref::terminal(0)),
            };
            let edges: Vec<Edge> = edges
                .iter()
                .map(|e| Edge {
                    last: e.last,
                    to: to(e.to),
                })
                .collect();
            made.push(arena.node(*level, &edges));
        }
        let root = made.last().copied().unwrap_or(Ref::terminal(0));
        (arena, root)
    }
}
