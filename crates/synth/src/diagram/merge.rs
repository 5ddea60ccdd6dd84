//! Long lists of rules as diagrams: merged by halves, with outputs as leaves, and then composed with what follows.
//!
//! Selecting rule by rule among the diagrams behind a filter takes time by the square of the rules. So a filter is a diagram of
//! its own first, whose leaves are numbers of outputs ([`output`]).

use std::collections::HashMap;

use super::{Full, Id, Node, Store};

/// Leaves from here on are outputs of a filter, not actions.
const OUTPUTS: u32 = 1 << 31;
/// The leaf of packets that no rule says anything of.
const NONE: u32 = OUTPUTS - 1;
/// Edges from which on what merging left behind is dropped.
const SWEEP: usize = 1 << 20;

/// The leaf of an output.
#[must_use]
pub fn output(number: usize) -> u32 {
    OUTPUTS + number as u32
}

/// The output that a leaf is; none of an action, and where no rule says anything.
#[must_use]
pub fn outputs(leaf: u32) -> Option<usize> {
    leaf.checked_sub(OUTPUTS).map(|n| n as usize)
}

impl Store {
    /// The leaf of packets that no rule says anything of.
    pub fn nowhere(&mut self) -> Id {
        self.leaf(NONE)
    }

    /// The first of some diagrams that says anything of a packet, else a last one.
    ///
    /// # Errors
    /// The budget is spent.
    pub fn first(&mut self, rules: &[Id], otherwise: Id) -> Result<Id, Full> {
        let mut scratch = Self::bounded(self.most);
        let mut memo = HashMap::new();
        let mut roots: Vec<Id> = rules
            .iter()
            .chain([&otherwise])
            .map(|id| scratch.import(self, *id, &mut memo))
            .collect();
        while roots.len() > 1 {
            let mut merged = Vec::with_capacity(roots.len().div_ceil(2));
            for pair in roots.chunks(2) {
                merged.push(match *pair {
                    [f, g] => scratch.over(f, g, &mut HashMap::new())?,
                    [f] => f,
                    _ => continue,
                });
            }
            roots = merged;
            if scratch.edges > SWEEP {
                let mut fresh = Self {
                    work: scratch.work,
                    ..Self::bounded(self.most)
                };
                let mut memo = HashMap::new();
                for root in &mut roots {
                    *root = fresh.import(&scratch, *root, &mut memo);
                }
                scratch = fresh;
            }
        }
        let root = roots.first().copied().unwrap_or(otherwise);
        let made = self.import(&scratch, root, &mut HashMap::new());
        match self.edges > self.most {
            true => Err(Full),
            false => Ok(made),
        }
    }

    /// A diagram of another store.
    fn import(&mut self, from: &Self, id: Id, memo: &mut HashMap<Id, Id>) -> Id {
        if let Some(done) = memo.get(&id) {
            return *done;
        }
        let made = match from.node(id) {
            Node::Leaf(action) => self.leaf(*action),
            Node::Branch { var, kids } => {
                let kids = kids
                    .iter()
                    .map(|(first, kid)| (*first, self.import(from, *kid, memo)))
                    .collect();
                self.branch(*var, kids)
            }
        };
        memo.insert(id, made);
        made
    }

    /// The first diagram where it says anything, else the second.
    fn over(&mut self, f: Id, g: Id, memo: &mut HashMap<(Id, Id), Id>) -> Result<Id, Full> {
        match (self.node(f), self.node(g)) {
            (Node::Leaf(NONE), _) => return Ok(g),
            (Node::Leaf(_), _) | (_, Node::Leaf(NONE)) => return Ok(f),
            _ if f == g => return Ok(f),
            _ => {}
        }
        if let Some(done) = memo.get(&(f, g)) {
            return Ok(*done);
        }
        let Some(top) = [f, g].iter().filter_map(|id| self.top(*id)).min() else {
            return Ok(f);
        };
        let mut kids = Vec::new();
        for first in self.cuts(&[f, g], top)? {
            let (f, g) = (self.at(f, top, first), self.at(g, top, first));
            kids.push((first, self.over(f, g, memo)?));
        }
        let made = self.branch(top, kids);
        memo.insert((f, g), made);
        Ok(made)
    }

    /// First values of the intervals into which some diagrams divide a field, if it is their first.
    ///
    /// # Errors
    /// The budget is spent.
    pub fn cuts(&mut self, of: &[Id], top: crate::field::Var) -> Result<Vec<u64>, Full> {
        let mut cuts = vec![0];
        for id in of {
            if let Node::Branch { var, kids } = self.node(*id)
                && *var == top
            {
                cuts.extend(kids.iter().map(|k| k.0));
            }
        }
        cuts.sort_unstable();
        cuts.dedup();
        self.spend(cuts.len())?;
        match self.edges > self.most {
            true => Err(Full),
            false => Ok(cuts),
        }
    }

    /// A filter's diagram with those behind its outputs in place of its leaves.
    ///
    /// # Errors
    /// The budget is spent.
    pub fn compose(&mut self, filter: Id, behind: &[Id]) -> Result<Id, Full> {
        let mut of = HashMap::new();
        for id in self.reachable(filter).into_iter().rev() {
            let below = match self.node(id) {
                Node::Leaf(number) => outputs(*number).into_iter().collect(),
                Node::Branch { kids, .. } => {
                    let below = kids.iter().filter_map(|k| of.get(&k.1));
                    let mut all: Vec<usize> = below.flatten().copied().collect();
                    all.sort_unstable();
                    all.dedup();
                    all
                }
            };
            of.insert(id, below);
        }
        let behind: Vec<Option<Id>> = behind.iter().copied().map(Some).collect();
        self.composed(filter, behind, &of, &mut HashMap::new())
    }

    fn composed(
        &mut self,
        filter: Id,
        mut behind: Vec<Option<Id>>,
        of: &HashMap<Id, Vec<usize>>,
        memo: &mut HashMap<(Id, Vec<Option<Id>>), Id>,
    ) -> Result<Id, Full> {
        if let Node::Leaf(number) = self.node(filter) {
            let found = outputs(*number).and_then(|n| behind.get(n).copied().flatten());
            return Ok(found.unwrap_or(filter));
        }
        // What no packet comes to from here makes no difference.
        let wanted = of.get(&filter).map_or(&[][..], Vec::as_slice);
        for (n, one) in behind.iter_mut().enumerate() {
            if !wanted.contains(&n) {
                *one = None;
            }
        }
        let asked = (filter, behind);
        if let Some(done) = memo.get(&asked) {
            return Ok(*done);
        }
        let all: Vec<Id> = asked.1.iter().flatten().copied().chain([filter]).collect();
        let Some(top) = all.iter().filter_map(|id| self.top(*id)).min() else {
            return Ok(filter);
        };
        let mut kids = Vec::new();
        for first in self.cuts(&all, top)? {
            let inner = self.at(filter, top, first);
            let behind = asked.1.iter();
            let behind = behind
                .map(|id| id.map(|id| self.at(id, top, first)))
                .collect();
            kids.push((first, self.composed(inner, behind, of, memo)?));
        }
        let made = self.branch(top, kids);
        memo.insert(asked, made);
        Ok(made)
    }
}
