//! Filters that are asked as lists: their rules as boxes, by what headers a packet has.
//!
//! Which headers there are decides which rules can fit at all, and is tested before: for each answer to that there is a list of the rules
//! that are left. These are boxes over addresses, ports and other fields of at most 32 bits.

use std::collections::{BTreeSet, HashMap};

use millrace_classify::{MOST_RULES, Rules};

use super::{Backward, Made, filter::MANY};
use crate::diagram::{Full, Id, Node, Store, outputs};
use crate::field::Var;
use crate::listed::{List, Lists};

/// Words that rules of a list may test.
const MOST_WORDS: usize = 15;

/// Whether a field can be a word of a list; others are tested before.
fn word(var: Var) -> bool {
    let before = var.of_shape() || matches!(var, Var::Destination | Var::Anno(_));
    !before && var.most() <= u64::from(u32::MAX)
}

impl Backward<'_> {
    /// The diagram of a filter, given those of its rules (leaves are outputs, or say nothing) and those behind its outputs, of which the
    /// first is for packets that it drops: those that no rule fits, too. Answers of lists take the place of tests of words.
    pub(super) fn listed(
        &mut self,
        id: usize,
        mut rules: Vec<Id>,
        behind: &[(Option<usize>, Id)],
        memo: &mut HashMap<Vec<Id>, Id>,
    ) -> Made {
        let nowhere = self.store.nowhere();
        rules.retain(|rule| *rule != nowhere);
        // Behind a rule for all packets none is asked.
        if let Some(last) = rules
            .iter()
            .position(|rule| self.store.top(*rule).is_none())
        {
            rules.truncate(last + 1);
        }
        if let Some(done) = memo.get(&rules) {
            return Ok(*done);
        }
        self.store.spend(rules.len())?;
        let tops = rules.iter().filter_map(|rule| self.store.top(*rule));
        let made = match tops.filter(|var| !word(*var)).min() {
            Some(var) => {
                let mut kids = Vec::new();
                for first in self.store.cuts(&rules, var)? {
                    let left = rules.iter().map(|rule| self.store.at(*rule, var, first));
                    let left = left.collect();
                    kids.push((first, self.listed(id, left, behind, memo)?));
                }
                self.store.select(var, kids)?
            }
            None if rules.len() <= MANY => {
                let dropped = self.store.leaf(crate::diagram::output(0));
                let filter = self.store.first(&rules, dropped)?;
                let behind: Vec<Id> = behind.iter().map(|b| b.1).collect();
                self.store.compose(filter, &behind)?
            }
            None => self.asked(id, &rules, behind)?,
        };
        memo.insert(rules, made);
        Ok(made)
    }

    /// A choice by the answer of a list.
    fn asked(&mut self, id: usize, rules: &[Id], behind: &[(Option<usize>, Id)]) -> Made {
        let mut fields = BTreeSet::new();
        let mut found: BTreeSet<usize> = BTreeSet::from([0]);
        for rule in rules {
            for node in self.store.reachable(*rule) {
                match self.store.node(node) {
                    Node::Branch { var, .. } => {
                        fields.insert(*var);
                    }
                    Node::Leaf(leaf) => found.extend(outputs(*leaf)),
                }
            }
        }
        // Outputs that no rule leads to have no answer.
        let found: Vec<usize> = found.into_iter().collect();
        let fields: Vec<Var> = fields.into_iter().collect();
        let room = MOST_RULES.saturating_sub(self.actions.lists.boxes());
        let list = Lists::rules(&fields, found.len(), room);
        let Some(mut list) = list.filter(|_| fields.len() <= MOST_WORDS) else {
            return Err(Full.into());
        };
        for (line, rule) in (1..).zip(rules) {
            let whole = fields.iter().map(|var| (0, var.most() as u32)).collect();
            let mut boxes = Boxes {
                fields: &fields,
                outputs: &found,
                line,
                at: whole,
            };
            boxes.add(&mut self.store, *rule, &mut list)?;
        }
        let answer = self.actions.lists.ask(List {
            element: id,
            fields,
            rules: list,
            outputs: { found.iter() }
                .map(|n| behind.get(*n).and_then(|b| b.0))
                .collect(),
        });
        let answer = answer.ok_or(Full)?;
        let mut kids = Vec::new();
        for (class, output) in (0..).zip(&found) {
            self.origins.entry((answer, class)).or_insert(id);
            kids.extend(behind.get(*output).map(|behind| (class, behind.1)));
        }
        Ok(self.store.select(answer, kids)?)
    }
}

/// The boxes of a rule.
struct Boxes<'a> {
    fields: &'a [Var],
    outputs: &'a [usize],
    line: u32,
    at: Vec<(u32, u32)>,
}

impl Boxes<'_> {
    fn add(&mut self, store: &mut Store, rule: Id, to: &mut Rules) -> Result<(), Full> {
        store.spend(1)?;
        let (var, kids) = match store.node(rule) {
            Node::Leaf(leaf) => {
                let output = outputs(*leaf);
                let class = output.and_then(|o| self.outputs.binary_search(&o).ok());
                return match class {
                    Some(class) => to
                        .push_box(&self.at, class as u32, self.line)
                        .map_err(|_| Full),
                    None => Ok(()),
                };
            }
            Node::Branch { var, kids } => (*var, kids.clone()),
        };
        let Some(word) = self.fields.iter().position(|field| *field == var) else {
            return Err(Full);
        };
        for (n, (first, kid)) in kids.iter().enumerate() {
            let last = kids.get(n + 1).map_or(var.most(), |k| k.0 - 1);
            if let Some(range) = self.at.get_mut(word) {
                *range = (*first as u32, last as u32);
            }
            self.add(store, *kid, to)?;
        }
        if let Some(range) = self.at.get_mut(word) {
            *range = (0, var.most() as u32);
        }
        Ok(())
    }
}
