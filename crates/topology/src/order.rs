//! The numbers of elements: the order in which they are run.

use std::collections::BTreeSet;

use crate::{End, Rearranged, Topology, TopologyError, at};

/// A connection from the one to the other.
pub(crate) type Edge = (End, End);

fn element(end: End) -> Option<usize> {
    match end {
        End::Element { element, .. } => Some(element),
        End::Out(_) => None,
    }
}

/// State of a depth-first search: not seen, on the path, done.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mark {
    New,
    Open,
    Done,
}

impl Topology {
    /// Connections between elements, each from the lower number to the higher. `placed` has no number yet: it is next to an
    /// end, on the side of that end's peer, and so on that of all that lead to the end.
    pub(crate) fn edges(&self, placed: Option<(usize, End, End)>) -> Vec<Edge> {
        // Twice the number, to have room between two.
        let rank = |own: usize, other: usize| match placed {
            Some((new, end, peer)) if own == new => match (element(end), element(peer)) {
                (Some(end), Some(peer)) if end > peer => 2 * end - 1,
                (Some(end), _) => 2 * end + 1,
                // Nothing else leads to it.
                (None, _) => 2 * other + 1,
            },
            _ => 2 * own,
        };
        let mut found = BTreeSet::new();
        for from in self.ends() {
            let Some(to) = self.lead(from) else {
                continue;
            };
            if let (Some(a), Some(b)) = (element(from), element(to)) {
                let forward = rank(a, b) <= rank(b, a);
                found.insert(if forward { (from, to) } else { (to, from) });
            }
        }
        found.into_iter().collect()
    }

    /// The same with its elements numbered in the order in which they are run; those from `old` on are new.
    pub(crate) fn ordered(self, old: usize, edges: &[Edge]) -> Result<Rearranged, TopologyError> {
        let reached = self.reached();
        if let Some(apart) = (0..self.leads.len()).find(|e| !reached.contains(e)) {
            return Err(TopologyError::Apart(apart));
        }
        let order = match self.tree(edges) {
            Some(order) => order,
            None => self.along(edges)?,
        };
        let mut place = vec![0; self.leads.len()];
        for (number, element) in order.iter().enumerate() {
            if let Some(place) = place.get_mut(*element) {
                *place = number;
            }
        }
        let renamed = |end: &End| match *end {
            End::Element { element, port } => at(place.get(element).copied().unwrap_or(0), port),
            out @ End::Out(_) => out,
        };
        let of = |element: &usize| {
            let ends = self.leads.get(*element).into_iter().flatten();
            ends.map(renamed).collect()
        };
        Ok(Rearranged {
            topology: Self {
                leads: order.iter().map(of).collect(),
                entries: self.entries.iter().map(renamed).collect(),
            },
            was: order
                .iter()
                .map(|e| Some(*e).filter(|e| *e < old))
                .collect(),
        })
    }

    fn first(&self) -> Option<usize> {
        self.entries.iter().find_map(|end| element(*end))
    }

    /// Elements that packets may reach.
    fn reached(&self) -> BTreeSet<usize> {
        let mut next: Vec<usize> = self.entries.iter().filter_map(|e| element(*e)).collect();
        let mut found = BTreeSet::new();
        while let Some(own) = next.pop() {
            if found.insert(own) {
                let leads = self.leads.get(own).into_iter().flatten();
                next.extend(leads.filter_map(|end| element(*end)));
            }
        }
        found
    }

    /// The order of a tree without joints: depth first; an element that is met a second time, other than by the way back, shows that
    /// it is none.
    fn tree(&self, edges: &[Edge]) -> Option<Vec<usize>> {
        let back = |(from, to): &Edge| self.lead(*to) == Some(*from);
        if !edges.iter().all(back) {
            return None;
        }
        let mut order = Vec::new();
        let mut stack = vec![(self.first()?, None)];
        while let Some((own, from)) = stack.pop() {
            if order.contains(&own) {
                return None;
            }
            order.push(own);
            let of = self.leads.get(own).map_or(&[][..], Vec::as_slice);
            for (port, end) in of.iter().enumerate().rev() {
                if let End::Element { element, port: at } = *end
                    && from != Some(port as u32)
                {
                    stack.push((element, Some(at)));
                }
            }
        }
        (order.len() == self.leads.len()).then_some(order)
    }

    /// An order in which all connections lead on: depth first from where port 0 of the chain leads, each element behind all that lead
    /// to it.
    fn along(&self, edges: &[Edge]) -> Result<Vec<usize>, TopologyError> {
        let mut to = vec![Vec::new(); self.leads.len()];
        for (from, end) in edges {
            if let (End::Element { element: own, port }, Some(next)) = (*from, element(*end))
                && let Some(to) = to.get_mut(own)
            {
                to.push((port, next));
            }
        }
        // What is done first stands last, so the last is looked at first.
        to.iter_mut()
            .for_each(|to| to.sort_unstable_by(|a, b| b.cmp(a)));
        let mut marks = vec![Mark::New; to.len()];
        let mut done = Vec::new();
        let first = self.first();
        let led = |own: &usize| to.iter().flatten().any(|(_, next)| next == own);
        let others = (0..to.len()).rev().filter(|own| Some(*own) != first);
        // Those to which nothing leads; what they do not lead to is behind a cycle.
        let starts = others.filter(|own| !led(own)).chain(first);
        for start in starts.chain(0..to.len()) {
            visit(start, &to, &mut marks, &mut done)?;
        }
        done.reverse();
        Ok(done)
    }
}

/// At most as deep as there are elements ([`crate::MOST_ELEMENTS`]).
fn visit(
    own: usize,
    to: &[Vec<(u32, usize)>],
    marks: &mut [Mark],
    done: &mut Vec<usize>,
) -> Result<(), TopologyError> {
    let Some(mark) = marks.get_mut(own) else {
        return Ok(());
    };
    match std::mem::replace(mark, Mark::Open) {
        Mark::New => {}
        Mark::Open => return Err(TopologyError::Cycle(own)),
        Mark::Done => {
            *mark = Mark::Done;
            return Ok(());
        }
    }
    for (_, next) in to.get(own).into_iter().flatten() {
        visit(*next, to, marks, done)?;
    }
    if let Some(mark) = marks.get_mut(own) {
        *mark = Mark::Done;
    }
    done.push(own);
    Ok(())
}
