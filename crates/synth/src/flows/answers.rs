//! Ways of flows, and what answers do, by the words of the flow that they answer.

use std::collections::{BTreeMap, HashMap};

use super::{Becomes, FLOW, Flows, Hop, Stop, Way, Work, asked};
use crate::action::{Stateful, Value, Verdict};
use crate::backward::{WORDS, word_of};
use crate::diagram::{Id, Node};
use crate::field::Var;

impl Work<'_> {
    /// The way of each program of a variant, and what its answers do.
    pub(super) fn ways(
        &mut self,
        root: Id,
        all: &[Vec<Hop>],
        flows: &Flows,
        first: &Stateful,
    ) -> Result<BTreeMap<Id, Way>, Stop> {
        let mut ways = BTreeMap::new();
        for id in self.store.reachable(root) {
            let depends = |hop: usize| {
                let entry = |var| matches!(var, Var::Entry(own, _) if usize::from(own) == hop);
                let var = self.store.top(id);
                var.is_some_and(|var| self.actions.lists.depends(var, &entry))
            };
            if let Some(hop) = (0..self.rewriters.len()).find(|hop| depends(*hop)) {
                let element = self.rewriters.get(hop).copied();
                let why = "what follows depends on which port or address of its range a flow gets";
                return Err(Stop::Refused(element.unwrap_or(0), why.into()));
            }
        }
        for program in self.programs(root) {
            let hops = self.store.reachable(program).into_iter();
            let hops = hops.filter_map(|id| match self.store.node(id) {
                Node::Leaf(number) => self.actions.get(*number).map(|a| usize::from(a.hops)),
                Node::Branch { .. } => None,
            });
            let most = hops.max().unwrap_or(0);
            if most == 0 {
                continue;
            }
            let early =
                self.store
                    .reachable(program)
                    .into_iter()
                    .any(|id| match self.store.node(id) {
                        Node::Leaf(number) => self.actions.get(*number).is_some_and(|a| {
                            usize::from(a.hops) < most && matches!(a.verdict, Verdict::Leave { .. })
                        }),
                        Node::Branch { .. } => false,
                    });
            if early {
                let why = "packets of a flow take it or not by what differs between them";
                return Err(Stop::Refused(first.at.element, why.into()));
            }
            // Ways of the same length may differ in their rewriters: those that lead to this program are known by it.
            let mut found: Vec<&Vec<Hop>> = all.iter().filter(|w| w.len() == most).collect();
            found.dedup();
            let [hops] = found.as_slice() else {
                let why = "flows take different rewriters behind it, by tests that are merged";
                return Err(Stop::Refused(first.at.element, why.into()));
            };
            let hops = (*hops).clone();
            let back = self.back(&hops, flows, first)?;
            ways.insert(program, Way { hops, back });
        }
        Ok(ways)
    }

    /// What answers to a flow do, by the flow's words.
    pub(super) fn back(
        &mut self,
        hops: &[Hop],
        flows: &Flows,
        first: &Stateful,
    ) -> Result<Option<Id>, Stop> {
        let Some(last) = hops.last() else {
            return Ok(None);
        };
        let mut borders = flows
            .answers
            .iter()
            .filter(|(_, a)| a.rewriter == last.rewriter && a.protocol == first.upper);
        let Some((border, answers, cut)) = borders.next().map(|(id, a)| (*id, a.header, a.cut))
        else {
            return Ok(None);
        };
        if borders.next().is_some() {
            let why = "answers come to it by several ports, or in several shapes";
            return Err(Stop::Refused(last.rewriter, why.into()));
        }
        let mut node = border;
        for (n, hop) in hops.iter().enumerate().rev() {
            node = self.answered(node, hop, n, hops, answers)?;
        }
        // Askings of others are answered by nobody.
        let rest = asked(self.store, self.actions, node);
        let drop = self.actions.plain(Verdict::Drop(usize::MAX));
        let drop = self.store.leaf(drop);
        let rest: HashMap<u32, Id> = rest.into_iter().map(|n| (n, drop)).collect();
        node = self.replace(node, &rest)?;
        node = self.shaped(node, (answers, cut), first)?;
        // The answer's own words are the last ones, reversed.
        let [source, destination, sport, dport] = last.words;
        let mut new: Vec<(Var, Value)> = WORDS
            .into_iter()
            .map(|word| {
                let own = Value::Field(word_of(first.header, word), 0);
                (Var::Entry(FLOW, word), own)
            })
            .collect();
        for (word, becomes) in WORDS.into_iter().zip([destination, source, dport, sport]) {
            let var = word_of(answers, word);
            match becomes {
                Becomes::Constant(number) => new.push((var, Value::Constant(number))),
                Becomes::Word(word) => {
                    new.push((var, Value::Field(word_of(first.header, word), 0)));
                }
                Becomes::Range(low, count) => {
                    node = self.store.known(node, var, low, low + count - 1)?;
                    let mut tops = { self.store.reachable(node).into_iter() }
                        .filter_map(|id| self.store.top(id));
                    if tops.any(|top| self.actions.lists.depends(top, &|read| read == var)) {
                        let why = "what answers do depends on which port or address of its range a flow gets";
                        return Err(Stop::Refused(last.rewriter, why.into()));
                    }
                }
            }
        }
        Ok(Some(self.renamed(node, &new)?))
    }

    /// Replaces the asking of a hop in a diagram of answers by what follows for a flow that is known.
    pub(super) fn answered(
        &mut self,
        node: Id,
        hop: &Hop,
        n: usize,
        hops: &[Hop],
        header: u16,
    ) -> Result<Id, Stop> {
        let mut replaced = HashMap::new();
        let came = match n.checked_sub(1).and_then(|b| hops.get(b)) {
            Some(before) => before.words,
            None => WORDS.map(Becomes::Word),
        };
        let [source, destination, sport, dport] = came;
        for number in asked(self.store, self.actions, node) {
            let Some(state) = self.actions.asked(number).cloned() else {
                continue;
            };
            if state.at.element != hop.rewriter {
                continue;
            }
            let then = state.then.iter().find(|t| t.0 == hop.back).map(|t| t.1);
            let Some(then) = then else {
                continue;
            };
            let mut inner = self.in_entry(then, hop.number)?;
            for (word, becomes) in WORDS.into_iter().zip([destination, source, dport, sport]) {
                let var = Var::Entry(hop.number, word);
                // Words of the flow are not those of the answer: they have names of their own until the end.
                inner = match becomes {
                    Becomes::Word(word) => {
                        self.renamed(inner, &[(var, Value::Field(Var::Entry(FLOW, word), 0))])?
                    }
                    other => self.resolve(inner, var, other, header)?,
                };
            }
            // The rewriters behind this one were passed before.
            for _ in n..hops.len() {
                inner = self.passed(inner)?;
            }
            replaced.insert(number, inner);
        }
        Ok(self.replace(node, &replaced)?)
    }
}
