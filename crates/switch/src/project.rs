//! Projection of a diagram onto the fields that a switch sees.
//!
//! Packets that look alike to the switch and have different fates are a server's. So a branch on a field that is not seen becomes
//! the diagram on which all its diagrams agree, with the server where they do not: no packet is decided on by a guess.

use std::collections::{BTreeSet, HashMap};

use millrace_synth::Synthesis;
use millrace_synth::diagram::{Full, Id, Node, Store};
use millrace_synth::field::Var;

use crate::outcome::{Outcomes, SERVER};

/// Packets that a switch can tell from all others, and what it sees of them.
pub(crate) struct Case<'a> {
    /// values that fields of these packets have
    pub(crate) known: &'a [(Var, u64, u64)],
    /// fields that the switch sees
    pub(crate) sees: &'a dyn Fn(Var) -> bool,
    /// their protocol, or 256
    pub(crate) protocol: u64,
    /// whether they have an IP header behind the Ethernet header
    pub(crate) has_ip: bool,
    /// whether frames have no padding
    pub(crate) padding: bool,
    /// the device by which they came
    pub(crate) port: u8,
}

/// The work of projecting.
pub(crate) struct Projection<'a> {
    pub(crate) of: &'a Synthesis,
    /// projected diagrams
    pub(crate) store: Store,
    pub(crate) outcomes: Outcomes,
    /// fields that are not seen and make a difference
    pub(crate) unseen: BTreeSet<String>,
    agreed: HashMap<(Id, Id), (Id, bool)>,
}

impl<'a> Projection<'a> {
    pub(crate) fn new(of: &'a Synthesis) -> Self {
        Self {
            of,
            store: Store::default(),
            outcomes: Outcomes::new(),
            unseen: BTreeSet::new(),
            agreed: HashMap::new(),
        }
    }

    /// What a switch may do with the packets of a case.
    pub(crate) fn case(&mut self, case: &Case<'_>) -> Result<Id, Full> {
        self.project(self.of.root, case, &mut HashMap::new())
    }

    fn project(&mut self, id: Id, case: &Case<'_>, memo: &mut HashMap<Id, Id>) -> Result<Id, Full> {
        if let Some(done) = memo.get(&id) {
            return Ok(*done);
        }
        let of = self.of;
        let made = match of.store.node(id) {
            Node::Leaf(action) => {
                let leaf = self
                    .outcomes
                    .of(of, *action, case.protocol, case.padding, case.has_ip);
                let leaf = self.outcomes.back(leaf, case.port);
                self.store.leaf(leaf)
            }
            Node::Branch { var, kids } => {
                let known = case.known.iter().find(|k| k.0 == *var);
                let (low, high) = known.map_or((0, var.most()), |k| (k.1, k.2));
                let mut new = Vec::new();
                for (n, (first, kid)) in kids.iter().enumerate() {
                    let last = kids.get(n + 1).map_or(var.most(), |k| k.0 - 1);
                    if last >= low && *first <= high {
                        new.push((*first, self.project(*kid, case, memo)?));
                    }
                }
                if known.is_none() && (case.sees)(*var) {
                    self.store.select(*var, new)?
                } else {
                    let mut all = new.into_iter().map(|k| k.1);
                    let mut made = match all.next() {
                        Some(first) => first,
                        None => self.store.leaf(SERVER),
                    };
                    let mut differ = false;
                    for kid in all {
                        let (agreed, other) = self.agree(made, kid)?;
                        made = agreed;
                        differ |= other;
                    }
                    if differ {
                        self.unseen.insert(var.to_string());
                    }
                    made
                }
            }
        };
        memo.insert(id, made);
        Ok(made)
    }

    /// Where two diagrams say the same, what they say, else the server; and whether they ever differ without saying so.
    pub(crate) fn agree(&mut self, f: Id, g: Id) -> Result<(Id, bool), Full> {
        if f == g {
            return Ok((f, false));
        }
        let asked = (f.min(g), f.max(g));
        if let Some(done) = self.agreed.get(&asked) {
            return Ok(*done);
        }
        let leaf = |store: &Store, id| match store.node(id) {
            Node::Leaf(leaf) => Some(*leaf),
            Node::Branch { .. } => None,
        };
        let (a, b) = (leaf(&self.store, f), leaf(&self.store, g));
        let made = match (a, b) {
            (Some(SERVER), _) => (f, false),
            (_, Some(SERVER)) => (g, false),
            (Some(_), Some(_)) => (self.store.leaf(SERVER), true),
            _ => {
                let tops = [f, g].into_iter().filter_map(|id| self.store.top(id));
                let Some(top) = tops.min() else {
                    return Ok((f, false));
                };
                let mut cuts = vec![0];
                for id in [f, g] {
                    if let Node::Branch { var, kids } = self.store.node(id)
                        && *var == top
                    {
                        cuts.extend(kids.iter().map(|k| k.0));
                    }
                }
                cuts.sort_unstable();
                cuts.dedup();
                let (mut kids, mut differ) = (Vec::new(), false);
                for cut in cuts {
                    let (f, g) = (self.store.at(f, top, cut), self.store.at(g, top, cut));
                    let (agreed, other) = self.agree(f, g)?;
                    kids.push((cut, agreed));
                    differ |= other;
                }
                (self.store.select(top, kids)?, differ)
            }
        };
        self.agreed.insert(asked, made);
        Ok(made)
    }

    /// The agreement of all.
    pub(crate) fn all(&mut self, ids: &[Id]) -> Result<Id, Full> {
        let mut made = match ids.first() {
            Some(first) => *first,
            None => self.store.leaf(SERVER),
        };
        for id in ids {
            made = self.agree(made, *id)?.0;
        }
        Ok(made)
    }
}
