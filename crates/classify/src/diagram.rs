//! Reduced interval decision diagrams with shared nodes.
//!
//! A node tests one word: its edges divide all numbers of 32 bits into intervals, each with where to go on. Words come in one
//! order on all ways, a node has at least two edges, neighbours lead to different places, and equal nodes are one. So two
//! diagrams in one arena are equal if and only if their roots are (Bryant's argument for BDDs, IEEE ToC C-35(8), 1986, with
//! intervals in place of bits).

use hashbrown::{DefaultHashBuilder, HashMap, HashTable};
use std::hash::BuildHasher;

use crate::budget::{Exceeded, Meter};

/// A node of an arena, or a terminal.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Ref(u32);

/// Terminals have this bit.
const TERMINAL: u32 = 1 << 31;

/// The terminal that stands for no rule.
pub const NONE: Ref = Ref(u32::MAX);

/// The most edges of an arena: 256 MiB.
const MOST_EDGES: usize = 1 << 25;

/// The level of terminals, behind all others.
const LAST: u8 = u8::MAX;

impl Ref {
    /// The terminal of a number below 2^31 - 1.
    #[must_use]
    pub fn terminal(number: u32) -> Self {
        Self(TERMINAL | number)
    }

    /// Its number, if it is a terminal; none of [`NONE`].
    #[must_use]
    pub fn number(self) -> Option<u32> {
        (self.0 & TERMINAL != 0 && self != NONE).then_some(self.0 & !TERMINAL)
    }

    /// Whether it is a terminal, [`NONE`] included.
    #[must_use]
    pub fn is_terminal(self) -> bool {
        self.0 & TERMINAL != 0
    }

    /// The node of a number below 2^31.
    pub(crate) fn node(number: u32) -> Self {
        Self(number)
    }

    pub(crate) fn index(self) -> usize {
        self.0 as usize
    }
}

/// The numbers up to `last`, behind those of the edge before, lead to `to`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Edge {
    /// the greatest
    pub last: u32,
    /// the node or terminal
    pub to: Ref,
}

#[derive(Clone, Copy, Debug)]
struct Node {
    level: u8,
    first: u32,
    edges: u32,
}

/// An operation on the terminals of two diagrams.
pub trait Merge {
    /// The result where two diagrams determine it: at least where both are terminals, and wherever else it is known without
    /// looking into them, as `f` for two equal ones.
    fn done(&self, f: Ref, g: Ref) -> Option<Ref>;
}

/// The first of two lists of rules where that says anything, else the second.
#[derive(Clone, Copy, Debug)]
pub struct First;

impl Merge for First {
    fn done(&self, f: Ref, g: Ref) -> Option<Ref> {
        if f == NONE {
            return Some(g);
        }
        (f.is_terminal() || g == NONE || f == g).then_some(f)
    }
}

/// An arena of diagrams.
#[derive(Default)]
pub struct Diagrams {
    nodes: Vec<Node>,
    edges: Vec<Edge>,
    unique: HashTable<u32>,
    hasher: DefaultHashBuilder,
    /// edges of nodes in the making
    open: Vec<Edge>,
}

impl Diagrams {
    /// An empty arena.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The level of a node, from 0; none of a terminal.
    #[must_use]
    pub fn level(&self, at: Ref) -> Option<u8> {
        Some(self.depth(at)).filter(|l| *l != LAST)
    }

    fn depth(&self, at: Ref) -> u8 {
        self.nodes.get(at.index()).map_or(LAST, |n| n.level)
    }

    /// The edges of a node, by ascending numbers; none of a terminal.
    #[must_use]
    pub fn edges(&self, at: Ref) -> &[Edge] {
        let Some(node) = self.nodes.get(at.index()) else {
            return &[];
        };
        let first = node.first as usize;
        self.edges
            .get(first..first + node.edges as usize)
            .unwrap_or(&[])
    }

    /// How many nodes and edges the arena holds, whether a diagram still needs them or not.
    #[must_use]
    pub fn size(&self) -> (usize, usize) {
        (self.nodes.len(), self.edges.len())
    }

    /// The node at `level` with these edges: by ascending `last`, the last of which is `u32::MAX`, and all to levels behind
    /// it. Neighbours that lead to one place become one edge, and a node of one edge is where that leads.
    pub fn node(&mut self, level: u8, edges: &[Edge]) -> Ref {
        let start = self.open.len();
        for edge in edges {
            self.extend(start, *edge);
        }
        self.close(level, start)
    }

    fn extend(&mut self, start: usize, edge: Edge) {
        match self.open.get_mut(start..).and_then(<[Edge]>::last_mut) {
            Some(before) if before.to == edge.to => before.last = edge.last,
            _ => self.open.push(edge),
        }
    }

    fn close(&mut self, level: u8, start: usize) -> Ref {
        let made = self.open.get(start..).unwrap_or(&[]);
        if let [edge] = made {
            let to = edge.to;
            self.open.truncate(start);
            return to;
        }
        let hash = self.hasher.hash_one((level, made));
        let (nodes, edges, hasher) = (&self.nodes, &self.edges, &self.hasher);
        let of = |index: u32| {
            let node = nodes.get(index as usize)?;
            let first = node.first as usize;
            Some((node.level, edges.get(first..first + node.edges as usize)?))
        };
        let same = |index: &u32| of(*index) == Some((level, made));
        if let Some(found) = self.unique.find(hash, same) {
            let found = Ref(*found);
            self.open.truncate(start);
            return found;
        }
        let index = nodes.len() as u32;
        let node = Node {
            level,
            first: edges.len() as u32,
            edges: made.len() as u32,
        };
        self.edges.extend_from_slice(made);
        self.nodes.push(node);
        self.open.truncate(start);
        let (nodes, edges) = (&self.nodes, &self.edges);
        self.unique.insert_unique(hash, index, |i| {
            let node = nodes.get(*i as usize);
            node.map_or(0, |n| {
                let first = n.first as usize;
                let made = edges.get(first..first + n.edges as usize).unwrap_or(&[]);
                hasher.hash_one((n.level, made))
            })
        });
        Ref(index)
    }

    /// The diagram that is `inside` in a box and `outside` elsewhere: ranges by level, both ends included, the first level's
    /// first. Levels of which a range has all numbers up to `max` are left out.
    pub fn cube(&mut self, ranges: &[(u32, u32)], max: &[u32], inside: Ref, outside: Ref) -> Ref {
        let mut below = inside;
        for (level, (&(lo, hi), &max)) in ranges.iter().zip(max).enumerate().rev() {
            if lo == 0 && hi == max {
                continue;
            }
            let before = (lo > 0).then(|| Edge {
                last: lo.saturating_sub(1),
                to: outside,
            });
            // Numbers that the word cannot have go the way of the greatest that it can.
            let behind = (hi < max).then_some(Edge {
                last: u32::MAX,
                to: outside,
            });
            let last = if behind.is_some() { hi } else { u32::MAX };
            let edges: Vec<Edge> = before
                .into_iter()
                .chain([Edge { last, to: below }])
                .chain(behind)
                .collect();
            below = self.node(level as u8, &edges);
        }
        below
    }

    /// The merge of two diagrams by an operation.
    ///
    /// # Errors
    /// [`Exceeded`] when the meter runs out, a step an edge, or the arena holds 2^25 edges.
    pub fn merge(
        &mut self,
        op: &impl Merge,
        f: Ref,
        g: Ref,
        meter: &mut Meter,
    ) -> Result<Ref, Exceeded> {
        let mut memo = HashMap::new();
        let merged = self.merged(op, f, g, &mut memo, meter);
        self.open.clear();
        merged
    }

    fn merged(
        &mut self,
        op: &impl Merge,
        f: Ref,
        g: Ref,
        memo: &mut HashMap<(Ref, Ref), Ref>,
        meter: &mut Meter,
    ) -> Result<Ref, Exceeded> {
        if let Some(done) = op.done(f, g) {
            return Ok(done);
        }
        if let Some(&known) = memo.get(&(f, g)) {
            return Ok(known);
        }
        let level = self.depth(f).min(self.depth(g));
        // What is not tested at this level is one edge.
        let part = |d: &Self, r: Ref| match d.nodes.get(r.index()) {
            Some(n) if n.level == level => (n.first as usize, n.edges as usize),
            _ => (0, 0),
        };
        let ((f_first, f_edges), (g_first, g_edges)) = (part(self, f), part(self, g));
        meter.spend(1 + f_edges as u64 + g_edges as u64)?;
        if self.edges.len() > MOST_EDGES {
            return Err(Exceeded);
        }
        let start = self.open.len();
        let (mut i, mut j) = (0, 0);
        loop {
            let at = |d: &Self, first: usize, edges: usize, i: usize, whole: Ref| {
                let edge = if edges == 0 {
                    None
                } else {
                    d.edges.get(first + i)
                };
                edge.copied().unwrap_or(Edge {
                    last: u32::MAX,
                    to: whole,
                })
            };
            let (a, b) = (
                at(self, f_first, f_edges, i, f),
                at(self, g_first, g_edges, j, g),
            );
            let to = self.merged(op, a.to, b.to, memo, meter)?;
            let last = a.last.min(b.last);
            self.extend(start, Edge { last, to });
            if last == u32::MAX {
                break;
            }
            i += usize::from(a.last == last);
            j += usize::from(b.last == last);
        }
        let made = self.close(level, start);
        memo.insert((f, g), made);
        Ok(made)
    }

    /// The terminal of a key: a number a level.
    #[must_use]
    pub fn find(&self, root: Ref, words: &[u32]) -> Ref {
        let mut at = root;
        while let Some(node) = self.nodes.get(at.index()) {
            let x = words.get(usize::from(node.level)).copied().unwrap_or(0);
            let edges = self.edges(at);
            let i = edges.partition_point(|e| e.last < x);
            let Some(edge) = edges.get(i) else {
                return NONE;
            };
            at = edge.to;
        }
        at
    }

    /// Keeps what these diagrams need and drops the rest; they are moved.
    pub fn keep(&mut self, roots: &mut [Ref]) {
        let mut fresh = Self::new();
        let mut moved = HashMap::new();
        for root in roots {
            *root = self.copy(*root, &mut fresh, &mut moved);
        }
        *self = fresh;
    }

    fn copy(&self, at: Ref, to: &mut Self, moved: &mut HashMap<Ref, Ref>) -> Ref {
        if at.is_terminal() {
            return at;
        }
        if let Some(known) = moved.get(&at) {
            return *known;
        }
        let edges: Vec<Edge> = (self.edges(at).iter())
            .map(|e| Edge {
                last: e.last,
                to: self.copy(e.to, to, moved),
            })
            .collect();
        let made = to.node(self.depth(at), &edges);
        moved.insert(at, made);
        made
    }

    /// The nodes of a diagram by level, each once, in the order in which a walk from the root meets them.
    #[must_use]
    pub fn reached(&self, root: Ref) -> Vec<Vec<Ref>> {
        let mut levels: Vec<Vec<Ref>> = Vec::new();
        let mut seen = vec![false; self.nodes.len()];
        let mut pending = vec![root];
        while let Some(at) = pending.pop() {
            let Some(seen) = seen.get_mut(at.index()).filter(|s| !**s) else {
                continue;
            };
            *seen = true;
            let level = usize::from(self.depth(at));
            if levels.len() <= level {
                levels.resize(level + 1, Vec::new());
            }
            levels[level].push(at);
            pending.extend(self.edges(at).iter().rev().map(|e| e.to));
        }
        levels
    }

    /// A key for each terminal that the diagram has: words by level, in ascending order of terminals. Words that are not
    /// tested are 0.
    #[must_use]
    pub fn witnesses(&self, root: Ref, levels: usize) -> Vec<(Ref, Vec<u32>)> {
        let mut found: Vec<(Ref, Vec<u32>)> = Vec::new();
        let mut seen = hashbrown::HashSet::new();
        let mut pending = vec![(root, vec![0; levels])];
        while let Some((at, key)) = pending.pop() {
            if !seen.insert(at) {
                continue;
            }
            if at.is_terminal() {
                found.push((at, key));
                continue;
            }
            let level = usize::from(self.depth(at));
            let mut least = 0;
            for edge in self.edges(at) {
                if !seen.contains(&edge.to) {
                    let mut key = key.clone();
                    if let Some(word) = key.get_mut(level) {
                        *word = least;
                    }
                    pending.push((edge.to, key));
                }
                least = edge.last.saturating_add(1);
            }
        }
        found.sort_by_key(|f| f.0);
        found
    }
}
