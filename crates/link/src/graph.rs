//! Which call follows which: pairs of an element and the port at which packets enter it.

use millrace_check::egress::egress;
use millrace_topology::{End, Topology};

use crate::refuse::{Reason, Unlinkable};
use crate::{Element, leads};

/// Packets that enter an element at a port.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Node {
    pub element: usize,
    pub port: u32,
}

/// The calls, each behind all that it may follow.
#[derive(Debug)]
pub(crate) struct Graph {
    pub order: Vec<Node>,
    /// by element and ingress port: the ports that packets may be sent to
    egress: Vec<Vec<Option<u64>>>,
}

/// State of a depth-first search: not seen, on the way, done.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mark {
    New,
    Open,
    Done,
}

impl Graph {
    /// The calls that packets which enter the chain may lead to.
    pub fn of(elements: &[Element<'_>], topology: &Topology) -> Result<Self, Unlinkable> {
        let all = elements.iter().enumerate();
        let of =
            |(at, e): (usize, &Element<'_>)| egress(e.program, 0, topology.ports(at).len() as u32);
        let mut graph = Self {
            order: Vec::new(),
            egress: all.map(of).collect(),
        };
        let ports = (0..elements.len()).map(|e| vec![Mark::New; topology.ports(e).len()]);
        let mut marks: Vec<Vec<Mark>> = ports.collect();
        for end in topology.entries() {
            if let End::Element { element, port } = *end {
                graph.visit(elements, topology, Node { element, port }, &mut marks)?;
            }
        }
        graph.order.reverse();
        Ok(graph)
    }

    /// Whether a packet may come to an element a second time, at another port.
    pub fn comes_again(&self, topology: &Topology, element: usize) -> bool {
        let begins = self.order.iter().enumerate();
        let mut begins = begins.filter(|(_, node)| node.element == element);
        begins.any(|(at, begin)| {
            // Each call stands behind all that it may follow.
            let mut reached = vec![*begin];
            for node in self.order.iter().skip(at) {
                if !reached.contains(node) {
                    continue;
                }
                for port in 0..topology.ports(node.element).len() as u32 {
                    match leads(topology, node.element, port) {
                        Some(End::Element { element, port: to }) if self.sends(*node, port) => {
                            reached.push(Node { element, port: to });
                        }
                        _ => {}
                    }
                }
            }
            reached
                .iter()
                .filter(|node| node.element == element)
                .count()
                > 1
        })
    }

    /// Whether an element may send a packet of a port to this one; without an answer it may.
    pub fn sends(&self, node: Node, to: u32) -> bool {
        let of = self.egress.get(node.element);
        let mask = of
            .and_then(|e| e.get(node.port as usize))
            .copied()
            .flatten();
        mask.is_none_or(|mask| mask >> to.min(63) & 1 == 1)
    }

    /// Depth first, at most [`millrace_topology::MOST_ELEMENTS`] elements deep in each direction.
    fn visit(
        &mut self,
        elements: &[Element<'_>],
        topology: &Topology,
        node: Node,
        marks: &mut [Vec<Mark>],
    ) -> Result<(), Unlinkable> {
        let mark = |marks: &mut [Vec<Mark>], node: Node, new: Mark| {
            let place = marks.get_mut(node.element)?.get_mut(node.port as usize)?;
            Some(std::mem::replace(place, new))
        };
        match mark(marks, node, Mark::Open) {
            Some(Mark::New) => {}
            old => {
                mark(marks, node, old.unwrap_or(Mark::Done));
                return Ok(());
            }
        }
        for port in 0..topology.ports(node.element).len() as u32 {
            let Some(End::Element {
                element,
                port: enters,
            }) = leads(topology, node.element, port)
            else {
                continue;
            };
            if !self.sends(node, port) {
                continue;
            }
            let next = Node {
                element,
                port: enters,
            };
            let open = marks.get(element).and_then(|m| m.get(enters as usize));
            if open == Some(&Mark::Open)
                && let (Some(own), Some(other)) =
                    (elements.get(node.element), elements.get(element))
            {
                return Err(own.refused(Reason::Back(other.name.to_owned())));
            }
            self.visit(elements, topology, next, marks)?;
        }
        mark(marks, node, Mark::Done);
        self.order.push(node);
        Ok(())
    }
}
