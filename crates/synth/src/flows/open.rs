//! New flows: what each becomes by its words, all rewriters on its way passed.

use std::collections::HashMap;

use millrace_click::rewriter::{Pattern, Specification};

use super::{Becomes, Flows, Hop, Opening, Stop, Variant, Work, asked};
use crate::action::{Stateful, Verdict};
use crate::backward::WORDS;
use crate::diagram::{Full, Id};
use crate::field::{Var, bit, ip};

/// Combinations of patterns of mappers.
const MOST_VARIANTS: usize = 64;

impl Work<'_> {
    pub(super) fn opening(
        &mut self,
        id: Id,
        first: &Stateful,
        flows: &Flows,
    ) -> Result<Opening, Stop> {
        let mut variants = Vec::new();
        let mut draws = vec![Vec::new()];
        // Each draw is a choice for every mapper, by rewriter; more are found while ways are followed.
        while let Some(draw) = draws.pop() {
            let mut ways = Vec::new();
            match self.open(id, &draw, &mut Vec::new(), &mut ways) {
                Ok(root) => {
                    let root = self.shaped(root, (first.header, first.cut), first)?;
                    let ways = self.ways(root, &ways, flows, first)?;
                    variants.push(Variant { root, ways });
                }
                Err(Undone::Draw(rewriter, count)) => {
                    for n in (0..count).rev() {
                        let mut more = draw.clone();
                        more.push((rewriter, n));
                        draws.push(more);
                    }
                }
                Err(Undone::Stop(stop)) => return Err(stop),
            }
            if variants.len() + draws.len() > MOST_VARIANTS {
                let why =
                    format!("flows may have more than {MOST_VARIANTS} combinations of patterns");
                return Err(Stop::Refused(first.at.element, why));
            }
        }
        Ok(Opening {
            header: first.header,
            protocol: first.upper,
            origin: first.hop,
            variants,
        })
    }

    /// A diagram for packets that came to a rewriter: which headers they have was tested before. What is decided once for a flow must
    /// not depend on headers that another packet of it may have or not.
    pub(super) fn shaped(
        &mut self,
        root: Id,
        (header, cut): (u16, bool),
        first: &Stateful,
    ) -> Result<Id, Stop> {
        let protocol = u64::from(first.upper);
        let bytes = if first.upper == 6 { 18 } else { 8 };
        let room = Var::Room(header, cut);
        let mut node = root;
        for (var, low, high) in [
            (ip(header, bit::OFFSET), 0, 0),
            (ip(header, bit::PROTOCOL), protocol, protocol),
            (room, bytes, room.most()),
        ] {
            node = self.store.known(node, var, low, high)?;
        }
        let rest = self.store.reachable(node).into_iter();
        let rest = rest.filter_map(|id| self.store.top(id));
        if let Some(var) = { rest }.find(|var| var.of_shape()) {
            let why = format!(
                "what follows depends on headers that packets of one flow may have or not ({var})"
            );
            return Err(Stop::Refused(first.at.element, why));
        }
        Ok(node)
    }

    /// A diagram with each asking replaced by what follows for a new flow. `hops` are the rewriters before, `ways` all ways.
    fn open(
        &mut self,
        id: Id,
        draw: &[(usize, usize)],
        hops: &mut Vec<Hop>,
        ways: &mut Vec<Vec<Hop>>,
    ) -> Result<Id, Undone> {
        let asked = asked(self.store, self.actions, id);
        let mut replaced = HashMap::new();
        for number in asked {
            let Some(state) = self.actions.asked(number).cloned() else {
                continue;
            };
            let element = state.at.element;
            if hops.iter().any(|h| h.rewriter == element) {
                return Err(refused(element, "flows come to it twice"));
            }
            let patterns = self.patterns(&state).map_err(Undone::Stop)?;
            if patterns.is_empty() {
                // An input of answers: a flow that is opened elsewhere comes to nothing here.
                let drop = self.actions.plain(Verdict::Drop(usize::MAX));
                replaced.insert(number, self.store.leaf(drop));
                continue;
            }
            let one = match patterns.as_slice() {
                [one] => one,
                several => match draw.iter().find(|d| d.0 == element) {
                    Some((_, n)) => several.get(*n).unwrap_or(&several[0]),
                    None => return Err(Undone::Draw(element, several.len())),
                },
            };
            let (hop, out) = self.hop(&state, one, hops.last()).map_err(Undone::Stop)?;
            let then = state.then.iter().find(|t| t.0 == out).map(|t| t.1);
            let Some(then) = then else {
                return Err(refused(element, "an output of its pattern leads nowhere"));
            };
            let known = self
                .behind(then, &state, &hop)
                .map_err(|_| Undone::Stop(Stop::Full))?;
            hops.push(hop);
            ways.push(hops.clone());
            let inner = self.open(known, draw, hops, ways)?;
            hops.pop();
            let inner = self.passed(inner).map_err(|_| Undone::Stop(Stop::Full))?;
            replaced.insert(number, inner);
        }
        self.replace(id, &replaced)
            .map_err(|_| Undone::Stop(Stop::Full))
    }

    /// What a rewriter makes of a flow, and the output of its packets.
    pub(super) fn hop(
        &self,
        state: &Stateful,
        one: &Specification,
        before: Option<&Hop>,
    ) -> Result<(Hop, usize), Stop> {
        let came = before.map_or(WORDS.map(Becomes::Word), |hop| hop.words);
        let [source, destination, sport, dport] = came;
        let (words, own, out, back) = match one {
            Specification::Keep(out, back) => (came, true, *out, *back),
            Specification::Pattern(pattern, out, back) => {
                let words = [
                    range(pattern.source().map(|(a, n)| (u64::from(a), n)), source),
                    pattern
                        .destination()
                        .map_or(destination, |a| Becomes::Constant(u64::from(a))),
                    range(pattern.sport().map(|(a, n)| (u64::from(a), n)), sport),
                    pattern
                        .dport()
                        .map_or(dport, |p| Becomes::Constant(u64::from(p))),
                ];
                (words, Pattern::own(pattern), *out, *back)
            }
            _ => {
                let why = "a pattern of its mapper is none";
                return Err(Stop::Refused(state.at.element, why.into()));
            }
        };
        let hop = Hop {
            rewriter: state.at.element,
            number: state.hop,
            words,
            own,
            back,
        };
        Ok((hop, out))
    }

    /// A diagram behind a rewriter with its words replaced by what they are for a new flow: tests are resolved, writes are
    /// those of the entry.
    pub(super) fn behind(&mut self, then: Id, state: &Stateful, hop: &Hop) -> Result<Id, Full> {
        let mut node = self.in_entry(then, hop.number)?;
        for (word, becomes) in WORDS.into_iter().zip(hop.words) {
            let var = Var::Entry(hop.number, word);
            node = self.resolve(node, var, becomes, state.header)?;
        }
        Ok(node)
    }
}

enum Undone {
    /// a mapper's pattern has to be drawn: the rewriter, and of how many
    Draw(usize, usize),
    Stop(Stop),
}

fn refused(element: usize, why: &str) -> Undone {
    Undone::Stop(Stop::Refused(element, why.into()))
}

fn range(given: Option<(u64, u64)>, came: Becomes) -> Becomes {
    match given {
        None => came,
        Some((low, 1)) => Becomes::Constant(low),
        Some((low, count)) => Becomes::Range(low, count),
    }
}
