//! Packets through one function or a chain of them, one after the other, in the packets' own time.

use std::collections::VecDeque;

use millrace_dataplane::packet::Fate;
use millrace_dataplane::runner::Timers;
use millrace_topology::{End, Topology};
use millrace_verify::Packet;

use crate::element::{Element, Part};
use crate::follow::ExplainError;

/// Most elements that one packet meets: copies of a flood are packets of their own.
const MOST_HOPS: usize = 4096;

/// A packet at an element.
pub struct Hop<'p> {
    /// which element
    pub element: usize,
    /// the packet as it comes there
    pub packet: &'p Packet,
    /// what became of it; none before
    pub done: Option<(Fate, &'p [u8])>,
}

/// Where a packet, or a copy of it, left.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Gone {
    /// the element that it left
    pub element: usize,
    /// its fate there; a port is the chain's
    pub fate: Fate,
    /// its bytes
    pub bytes: Vec<u8>,
}

/// Functions that run, as they are connected.
pub struct Walk<'a> {
    parts: &'a [Part<'a>],
    topology: &'a Topology,
    running: Option<Running<'a>>,
    clock: u64,
}

pub(crate) struct Running<'a> {
    elements: Vec<Element<'a>>,
    timers: Vec<Timers>,
}

impl<'a> Walk<'a> {
    /// Before the first packet.
    #[must_use]
    pub fn new(parts: &'a [Part<'a>], topology: &'a Topology) -> Self {
        Self {
            parts,
            topology,
            running: None,
            clock: 0,
        }
    }

    /// The elements, once a packet has come.
    pub fn elements(&mut self) -> &mut [Element<'a>] {
        self.running.as_mut().map_or(&mut [], |r| &mut r.elements)
    }

    /// The time of the packet at hand, ns: it does not go back.
    pub fn comes(&mut self, time: u64) -> u64 {
        self.clock = self.clock.max(time);
        self.clock
    }

    /// The elements, made if this is the first packet; timers fire that are due before it.
    pub(crate) fn begin(&mut self, time: u64) -> Result<&mut Running<'a>, ExplainError> {
        let running = match &mut self.running {
            Some(running) => running,
            none => {
                let elements = self.parts.iter().map(|p| Element::new(p, time));
                let elements = elements.collect::<Result<Vec<_>, _>>()?;
                let timers = self.parts.iter();
                let timers = timers.map(|p| Timers::new(p.module.timers(), time));
                none.insert(Running {
                    timers: timers.collect(),
                    elements,
                })
            }
        };
        for (element, timers) in running.elements.iter_mut().zip(&mut running.timers) {
            if timers.due(time) {
                for (moment, timer) in timers.take(time) {
                    element.instance.alarm(moment);
                    element.instance.fire(timer, moment);
                }
            }
        }
        Ok(running)
    }

    /// A packet goes by that nobody asks about; `after` sees each element that it met.
    ///
    /// # Errors
    /// State cannot be made.
    pub fn past(
        &mut self,
        packet: &Packet,
        after: &mut dyn FnMut(usize, &mut Element<'a>),
    ) -> Result<(), ExplainError> {
        if !self.topology.is_alone() {
            let gone = self.pass(packet, &mut |hop, element| {
                if hop.done.is_some() {
                    after(hop.element, element);
                }
                Ok(())
            });
            return gone.map(|_| ());
        }
        let running = self.begin(packet.time)?;
        if let Some(element) = running.elements.first_mut() {
            element.run(packet);
            element.drain();
            after(0, element);
        }
        Ok(())
    }

    /// A packet goes through; `look` sees it before and after each element, and the element.
    ///
    /// # Errors
    /// State cannot be made.
    pub fn pass(
        &mut self,
        packet: &Packet,
        look: &mut dyn FnMut(&Hop<'_>, &mut Element<'a>) -> Result<(), ExplainError>,
    ) -> Result<Vec<Gone>, ExplainError> {
        let time = packet.time;
        let topology = self.topology;
        let running = self.begin(time)?;
        let mut gone = Vec::new();
        let mut waiting: VecDeque<(usize, Packet)> = VecDeque::new();
        let (mut next, alone) = (None, topology.is_alone());
        if alone {
            next = Some((0, None));
        } else if let Some(End::Element { element, port }) =
            topology.entries().get(packet.port as usize)
        {
            let at = Packet {
                port: *port,
                ..packet.clone()
            };
            next = Some((*element, Some(at)));
        }
        let mut hops = 0;
        while let Some((index, own)) = next {
            hops += 1;
            let packet = own.as_ref().unwrap_or(packet);
            let Some(element) = running.elements.get_mut(index) else {
                break;
            };
            element.instance.alarm(time);
            look(
                &Hop {
                    element: index,
                    packet,
                    done: None,
                },
                element,
            )?;
            let (fate, bytes) = element.run(packet);
            let bytes = bytes.to_vec();
            look(
                &Hop {
                    element: index,
                    packet,
                    done: Some((fate, &bytes)),
                },
                element,
            )?;
            element.drain();
            let ports: Vec<u32> = match fate {
                Fate::Forwarded(port) => vec![port],
                Fate::Flooded => {
                    let all = 0..element.part.ports.len() as u32;
                    all.filter(|p| *p != packet.port).collect()
                }
                _ => Vec::new(),
            };
            if alone || ports.is_empty() {
                gone.push(Gone {
                    element: index,
                    fate,
                    bytes,
                });
            } else {
                for port in ports {
                    match topology.ports(index).get(port as usize) {
                        Some(End::Element { element, port }) => waiting.push_back((
                            *element,
                            Packet {
                                port: *port,
                                frame: bytes.clone(),
                                ..packet.clone()
                            },
                        )),
                        Some(End::Out(port)) => gone.push(Gone {
                            element: index,
                            fate: Fate::Forwarded(*port),
                            bytes: bytes.clone(),
                        }),
                        None => gone.push(Gone {
                            element: index,
                            fate: Fate::Aborted,
                            bytes: bytes.clone(),
                        }),
                    }
                }
            }
            next = waiting
                .pop_front()
                .filter(|_| hops < MOST_HOPS)
                .map(|(e, p)| (e, Some(p)));
        }
        Ok(gone)
    }
}
