//! Packets followed through the elements of a worker, for a trace of a running function.
//!
//! Nothing is asked while nobody watches: one test a burst. Each observer chooses packets of a burst before any element has
//! seen them, and is told what became of them. Of a packet whose state it asks for ([`Follow::Apart`]), each element runs the packets in
//! front, tells the observers the state that this one meets, and runs it by itself: a burst in pieces does what the whole
//! burst does.

use super::chain::{Chain, End};
use crate::module::{Instance, abi};
use crate::packet::Fate;
use crate::port::Frame;

/// A packet between two elements.
#[derive(Clone, Copy, Debug)]
pub struct Sight<'a> {
    /// unlike that of any other packet of the run
    pub number: u64,
    /// the port that it comes in at: the chain's before the first element, then the element's
    pub port: u32,
    /// ns since the epoch, as the function sees it
    pub time: u64,
    /// its length on the wire, bytes; that of the frame where it is unknown
    pub wire: u32,
    /// its bytes
    pub frame: &'a [u8],
}

/// How a packet is followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Follow {
    /// not at all
    No,
    /// its end is told
    End,
    /// each element runs it by itself, and the state that it meets is told
    Apart,
}

/// The element that decided what becomes of a packet.
#[derive(Clone, Copy, Debug)]
pub struct Decided<'a> {
    /// its place among the elements
    pub place: usize,
    /// its number in the run
    pub id: u64,
    /// its name
    pub name: &'a str,
    /// the names of its drop reasons, by index
    pub reasons: &'a [String],
}

/// What is told of packets that are followed. It is called between the calls of elements, and packets wait meanwhile.
pub trait Observer: Send {
    /// A burst of so many packets has come; false: none of them is asked about.
    fn burst(&mut self, packets: usize) -> bool;
    /// How this packet, which has come in, is followed.
    fn follows(&mut self, packet: &Sight<'_>) -> Follow;
    /// A packet that is followed apart comes to an element; `state` is what it meets, none of an element that is no function or
    /// whose state is in two places. Packets that another observer follows are told too.
    fn comes(&mut self, element: u64, state: Option<&mut Instance>, packet: &Sight<'_>);
    /// The element has said what becomes of it; the port of the packet is the one that it came in at.
    fn leaves(&mut self, element: u64, packet: &Sight<'_>, fate: Fate);
    /// A packet of the burst that somebody follows is through, with its fate in the chain's ports.
    fn ends(&mut self, number: u64, fate: Fate, decided: &Decided<'_>);
    /// The elements are others from now on; false: it watches no more.
    fn changed(&mut self) -> bool;
}

/// What somebody watches packets for: one observer each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// packets are explained as they come
    Trace,
    /// some packets are counted, and exported
    Sample,
}

/// Who watches the packets of a worker.
#[derive(Default)]
pub struct Watch {
    observers: Vec<(Purpose, Box<dyn Observer>)>,
    /// of each observer: it asks about packets of this burst
    asks: Vec<bool>,
}

impl Watch {
    /// Whether anybody watches.
    #[inline]
    pub(super) fn any(&self) -> bool {
        !self.observers.is_empty()
    }

    /// Has an observer for a purpose from now on, in place of the one before; none: nobody watches for it any more.
    pub fn set(&mut self, purpose: Purpose, observer: Option<Box<dyn Observer>>) {
        self.observers.retain(|(p, _)| *p != purpose);
        self.observers.extend(observer.map(|o| (purpose, o)));
    }

    /// The elements are others from now on.
    pub(super) fn changed(&mut self) {
        self.observers
            .retain_mut(|(_, observer)| observer.changed());
    }

    /// A burst has come; false: nobody asks about a packet of it.
    fn burst(&mut self, packets: usize) -> bool {
        self.asks.clear();
        let each = self.observers.iter_mut().map(|(_, o)| o.burst(packets));
        self.asks.extend(each);
        self.asks.contains(&true)
    }

    fn asking(&mut self) -> impl Iterator<Item = &mut Box<dyn Observer>> {
        let each = self.observers.iter_mut().zip(&self.asks);
        each.filter(|(_, asks)| **asks).map(|((_, o), _)| o)
    }

    /// The most that somebody asks of a packet.
    fn follows(&mut self, packet: &Sight<'_>) -> Follow {
        let each = self.asking().map(|o| o.follows(packet));
        each.fold(Follow::No, |most, one| match (most, one) {
            (Follow::Apart, _) | (_, Follow::Apart) => Follow::Apart,
            (Follow::End, _) | (_, Follow::End) => Follow::End,
            (Follow::No, Follow::No) => Follow::No,
        })
    }
}

/// A packet as it stands.
///
/// # Safety
/// Between the descriptor's bounds are bytes that nobody changes while the answer is in use.
unsafe fn sight<'a>(packet: &abi::Packet, frame: Option<&Frame>) -> Sight<'a> {
    let length = packet.end.addr().saturating_sub(packet.data.addr());
    // SAFETY: as the caller promises.
    let bytes = unsafe { std::slice::from_raw_parts(packet.data, length) };
    Sight {
        number: packet.number,
        port: packet.port,
        time: packet.time,
        wire: frame.map_or(0, |f| f.wire).max(length as u32),
        frame: bytes,
    }
}

impl Chain {
    /// Asks which packets of a burst are followed.
    ///
    /// # Safety
    /// As of [`Chain::run`]: the descriptors describe packets.
    pub(super) unsafe fn watched(&mut self, packets: &[abi::Packet], frames: &[Frame]) {
        self.followed.clear();
        self.ending.clear();
        if !self.watch.burst(packets.len()) {
            return;
        }
        for (index, packet) in packets.iter().enumerate() {
            // SAFETY: as the caller promises; the answer is used here only.
            let seen = unsafe { sight(packet, frames.get(index)) };
            match self.watch.follows(&seen) {
                Follow::No => continue,
                Follow::End => {}
                Follow::Apart => self.followed.push(index),
            }
            self.ending.push(index);
        }
    }

    /// Calls one function with the chosen packets, of which some are followed.
    ///
    /// # Safety
    /// As of `Chain::call`.
    pub(super) unsafe fn call_apart(&mut self, stage: usize, frames: &[Frame]) {
        let Self {
            stages,
            work,
            watch,
            pointers,
            chosen,
            followed,
            ..
        } = self;
        let (Some(running), Some(work)) = (stages.get_mut(stage), work.get_mut(stage)) else {
            return;
        };
        let element = running.life.id;
        let mut from = 0;
        let mut pieces = Vec::new();
        for (place, index) in chosen.iter().enumerate() {
            if followed.contains(index) {
                pieces.extend([(from..place, false), (place..place + 1, true)]);
                from = place + 1;
            }
        }
        pieces.push((from..chosen.len(), false));
        for (piece, followed) in pieces {
            let (Some(pointers), Some(chosen)) = (pointers.get(piece.clone()), chosen.get(piece))
            else {
                continue;
            };
            let (Some(first), Some(index)) = (pointers.first().copied(), chosen.first().copied())
            else {
                continue;
            };
            let port = if followed {
                // SAFETY: the pointer is to a descriptor of this burst, to which nothing else refers now.
                let packet = unsafe { &*first };
                running.replay_before(packet.commit);
                // SAFETY: its bytes are changed by the call of `run` below only.
                let seen = unsafe { sight(packet, frames.get(index)) };
                for observer in watch.asking() {
                    observer.comes(element, running.whole(), &seen);
                }
                packet.port
            } else {
                0
            };
            // SAFETY: as the caller promises: distinct descriptors of this burst.
            work.ticks += unsafe { running.run(pointers, chosen, frames) };
            work.bursts += 1;
            work.packets += pointers.len() as u64;
            if followed {
                // SAFETY: as above, and the call is over.
                let packet = unsafe { &*first };
                // SAFETY: as above.
                let seen = Sight {
                    port,
                    ..unsafe { sight(packet, frames.get(index)) }
                };
                for observer in watch.asking() {
                    observer.leaves(element, &seen, Fate::of(packet));
                }
            }
        }
    }

    /// Tells what became of the followed packets.
    pub(super) fn told(&mut self, packets: &[abi::Packet]) {
        self.followed.clear();
        for index in self.ending.drain(..) {
            let end = self.ends.get(index).copied().unwrap_or_default();
            if let Some(packet) = packets.get(index) {
                let fate = match end {
                    End { looped: true, .. } | End { flooded: true, .. } => Fate::Aborted,
                    _ => Fate::of(packet),
                };
                let place = end.stage as usize;
                let Some(life) = self.stages.get(place).map(|s| &s.life) else {
                    continue;
                };
                let decided = Decided {
                    place,
                    id: life.id,
                    name: &life.name,
                    reasons: &life.reasons,
                };
                for observer in self.watch.asking() {
                    observer.ends(packet.number, fate, &decided);
                }
            }
        }
    }
}
