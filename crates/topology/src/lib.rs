//! Topology of a chain: elements whose ports lead to each other's, in both directions, or out of the chain.
//!
//! Connections lead from one port to another, and the other leads back. Several may lead to the same port (a joint): packets of all of them
//! enter there, and those that leave there go to the first. Along connections there is no cycle (a directed acyclic graph): elements are
//! numbered so that connections lead to higher numbers, and a packet changes its direction only where an element sends it
//! back, which is counted (`worker/order.rs`). In a tree connections may lead either way: its elements are numbered depth first from where
//! port 0 of the chain leads, so that a line has its own order.

mod error;
mod order;
#[cfg(test)]
mod tests;

use std::collections::HashSet;
use std::fmt;

pub use error::TopologyError;

/// The most elements of a chain: far more than anybody runs in one thread.
pub const MOST_ELEMENTS: usize = 64;

/// Where a port leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum End {
    /// to this element's port
    Element {
        /// its number
        element: usize,
        /// its port
        port: u32,
    },
    /// out of the chain, at this port
    Out(u32),
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Element { element, port } => write!(f, "port {port} of element {element}"),
            Self::Out(port) => write!(f, "port {port} of the chain"),
        }
    }
}

/// The connections of a chain, sound: every port leads somewhere, and back unless it leads to a joint; along connections there is no
/// cycle, and packets reach every element.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Topology {
    /// by element and port
    leads: Vec<Vec<End>>,
    /// by port of the chain
    entries: Vec<End>,
}

/// A chain that was changed: for each of its elements the one it was, none for a new one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rearranged {
    /// the connections
    pub topology: Topology,
    /// by element, its number before
    pub was: Vec<Option<usize>>,
}

fn at(element: usize, port: u32) -> End {
    End::Element { element, port }
}

impl Topology {
    /// One element whose ports are the chain's.
    #[must_use]
    pub fn alone(ports: usize) -> Self {
        let ports = 0..ports as u32;
        Self {
            leads: vec![ports.clone().map(End::Out).collect()],
            entries: ports.map(|port| at(0, port)).collect(),
        }
    }

    /// Elements of two ports in a row, at least one: port 1 of each leads to port 0 of the next and back.
    #[must_use]
    pub fn line(elements: usize) -> Self {
        let last = elements.max(1) - 1;
        let of = |element: usize| {
            let before = match element {
                0 => End::Out(0),
                _ => at(element - 1, 1),
            };
            let behind = match element {
                _ if element == last => End::Out(1),
                _ => at(element + 1, 0),
            };
            vec![before, behind]
        };
        Self {
            leads: (0..=last).map(of).collect(),
            entries: vec![at(0, 0), at(last, 1)],
        }
    }

    /// Elements with this many ports each, in any order, and what leads to what; `entries` are the ports of elements at
    /// which packets enter and leave, in the order of the chain's ports. Several may lead to one port that leads to none itself: it leads
    /// back to the first.
    ///
    /// # Errors
    /// See [`TopologyError`]; elements have the numbers that they were given here.
    pub fn of(
        ports: &[usize],
        joins: &[(End, End)],
        entries: &[End],
    ) -> Result<Rearranged, TopologyError> {
        if ports.is_empty() || ports.len() > MOST_ELEMENTS {
            return Err(TopologyError::Count(ports.len()));
        }
        let mut leads: Vec<Vec<Option<End>>> = ports.iter().map(|n| vec![None; *n]).collect();
        let outer = entries.iter().zip(0..);
        let outer = outer.map(|(end, port)| (*end, End::Out(port)));
        let mut joints = HashSet::new();
        for (one, other) in joins.iter().copied().chain(outer) {
            for (from, to) in [(one, other), (other, one)] {
                let End::Element { element, port } = from else {
                    continue;
                };
                let place = leads
                    .get_mut(element)
                    .and_then(|l| l.get_mut(port as usize));
                let place = place.ok_or(TopologyError::Unknown(from))?;
                let joint = from == other && one != other && !joints.insert(from);
                match place {
                    Some(_) if joint => {}
                    Some(_) => return Err(TopologyError::Twice(from)),
                    None => *place = Some(to),
                }
            }
        }
        let mut all = Vec::new();
        for (element, of) in leads.into_iter().enumerate() {
            let ends = of.into_iter().zip(0..);
            let ends =
                ends.map(|(end, port)| end.ok_or(TopologyError::Unconnected(at(element, port))));
            all.push(ends.collect::<Result<Vec<_>, _>>()?);
        }
        Self {
            leads: all,
            entries: entries.to_vec(),
        }
        .ordered(ports.len(), joins)
    }

    /// How many elements there are.
    #[must_use]
    pub fn elements(&self) -> usize {
        self.leads.len()
    }

    /// Where an element's ports lead; nothing for one that is not there.
    #[inline]
    #[must_use]
    pub fn ports(&self, element: usize) -> &[End] {
        self.leads.get(element).map_or(&[], Vec::as_slice)
    }

    /// Where the chain's ports lead.
    #[inline]
    #[must_use]
    pub fn entries(&self) -> &[End] {
        &self.entries
    }

    /// Whether it is one element whose ports are the chain's, so that nothing needs to be translated.
    #[must_use]
    pub fn is_alone(&self) -> bool {
        let same = |(end, port): (&End, u32)| *end == at(0, port);
        self.elements() == 1 && self.entries.iter().zip(0..).all(same)
    }

    /// Whether elements of two ports stand in a row.
    #[must_use]
    pub fn is_line(&self) -> bool {
        *self == Self::line(self.elements())
    }

    /// With a new element of two ports between a port and where it leads. Its port 0 leads to `end`, or with
    /// `before` its port 1.
    ///
    /// # Errors
    /// There is no such port, or there are too many elements.
    pub fn insert(&self, end: End, before: bool) -> Result<Rearranged, TopologyError> {
        let new = self.elements();
        if new >= MOST_ELEMENTS {
            return Err(TopologyError::Count(new + 1));
        }
        let mut changed = self.clone();
        let peer = self.lead(end).ok_or(TopologyError::Unknown(end))?;
        let (near, far) = if before { (1, 0) } else { (0, 1) };
        changed.leads.push(match near {
            0 => vec![end, peer],
            _ => vec![peer, end],
        });
        changed.between(end, (at(new, near), at(new, far)));
        let edges = changed.edges(Some((new, end, peer)));
        changed.ordered(new, &edges)
    }

    /// Without an element of two ports: what its ports led to lead to each other.
    ///
    /// # Errors
    /// It is not there, is the only one, or has not two ports.
    pub fn remove(&self, element: usize) -> Result<Rearranged, TopologyError> {
        if self.elements() < 2 {
            return Err(TopologyError::Count(0));
        }
        let without = self.bridged(element)?;
        // The last one takes its number for a moment, so that numbers have no gap.
        let last = self.elements() - 1;
        let mut changed = without;
        changed.leads.swap_remove(element);
        let moved = |end: &mut End| {
            if let End::Element { element: e, .. } = end
                && *e == last
            {
                *e = element;
            }
        };
        changed.leads.iter_mut().flatten().for_each(moved);
        changed.entries.iter_mut().for_each(moved);
        // The last one has a lower number now than others that lead to it.
        let edges = changed.edges(None);
        let own = |e: usize| match e {
            _ if e == element => last,
            _ => e,
        };
        let turned = |(a, b): (End, End)| match (a, b) {
            (End::Element { element: x, .. }, End::Element { element: y, .. })
                if own(x) > own(y) =>
            {
                (b, a)
            }
            _ => (a, b),
        };
        let edges: Vec<_> = edges.into_iter().map(turned).collect();
        let mut done = changed.ordered(last, &edges)?;
        for was in done.was.iter_mut().flatten() {
            if *was == element {
                *was = last;
            }
        }
        Ok(done)
    }

    /// With an element of two ports moved to between `end` and where that leads; see [`Self::insert`].
    ///
    /// # Errors
    /// As of [`Self::insert`] and [`Self::remove`], or `end` is a port of the element itself.
    pub fn shift(
        &self,
        element: usize,
        end: End,
        before: bool,
    ) -> Result<Rearranged, TopologyError> {
        if matches!(end, End::Element { element: e, .. } if e == element) {
            return Err(TopologyError::Cycle(element));
        }
        let mut changed = self.bridged(element)?;
        let peer = changed.lead(end).ok_or(TopologyError::Unknown(end))?;
        let (near, far) = if before { (1, 0) } else { (0, 1) };
        changed.between(end, (at(element, near), at(element, far)));
        changed.set(at(element, near), end);
        changed.set(at(element, far), peer);
        let edges = changed.edges(Some((element, end, peer)));
        changed.ordered(self.elements(), &edges)
    }

    /// A line in this order of its elements.
    ///
    /// # Errors
    /// It is no line, or the order does not name each element once.
    pub fn reorder(&self, order: &[usize]) -> Result<Rearranged, TopologyError> {
        if !self.is_line() {
            return Err(TopologyError::NotLine);
        }
        let mut sorted = order.to_vec();
        sorted.sort_unstable();
        if !sorted.into_iter().eq(0..self.elements()) {
            return Err(TopologyError::Order);
        }
        Ok(Rearranged {
            topology: self.clone(),
            was: order.iter().copied().map(Some).collect(),
        })
    }

    /// With another element of the same ports in the place of one.
    ///
    /// # Errors
    /// There is no such element, or it has other ports.
    pub fn replace(&self, element: usize, ports: usize) -> Result<Rearranged, TopologyError> {
        match self.leads.get(element) {
            None => Err(TopologyError::Unknown(at(element, 0))),
            Some(own) if own.len() != ports => Err(TopologyError::Unknown(at(
                element,
                own.len().min(ports) as u32,
            ))),
            Some(_) => Ok(Rearranged {
                topology: self.clone(),
                was: (0..self.elements())
                    .map(|e| Some(e).filter(|e| *e != element))
                    .collect(),
            }),
        }
    }

    /// What the ports of an element led to lead to each other; it itself leads where it did.
    fn bridged(&self, element: usize) -> Result<Self, TopologyError> {
        let (one, other) = match self.leads.get(element).map(Vec::as_slice) {
            Some([one, other]) => (*one, *other),
            Some(_) => return Err(TopologyError::NotTwo(element)),
            None => return Err(TopologyError::Unknown(at(element, 0))),
        };
        let mut changed = self.clone();
        // All that lead to it lead beyond it.
        for (port, beyond) in [(0, other), (1, one)] {
            for end in self.ends() {
                if self.lead(end) == Some(at(element, port)) {
                    changed.set(end, beyond);
                }
            }
        }
        Ok(changed)
    }

    /// Leads an end to an element's near port, and all that led to the end to its far one.
    fn between(&mut self, end: End, (near, far): (End, End)) {
        for other in self.ends() {
            if self.lead(other) == Some(end) && other != near {
                self.set(other, far);
            }
        }
        self.set(end, near);
    }

    /// All ports of elements and of the chain.
    fn ends(&self) -> Vec<End> {
        let of = |(element, ports): (usize, &Vec<End>)| {
            (0..ports.len() as u32).map(move |port| at(element, port))
        };
        let own = self.leads.iter().enumerate().flat_map(of);
        own.chain((0..self.entries.len() as u32).map(End::Out))
            .collect()
    }

    fn lead(&self, end: End) -> Option<End> {
        match end {
            End::Element { element, port } => self.ports(element).get(port as usize).copied(),
            End::Out(port) => self.entries.get(port as usize).copied(),
        }
    }

    fn set(&mut self, from: End, to: End) {
        let place = match from {
            End::Element { element, port } => {
                let of = self.leads.get_mut(element);
                of.and_then(|l| l.get_mut(port as usize))
            }
            End::Out(port) => self.entries.get_mut(port as usize),
        };
        if let Some(place) = place {
            *place = to;
        }
    }
}
