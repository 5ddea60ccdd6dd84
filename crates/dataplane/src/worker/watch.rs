//! Packets followed through the elements of a worker, for a trace of a running function.
//!
//! Nothing is asked while nobody watches: one test a burst. An observer chooses packets of a burst before any element has
//! seen them. Each element then runs the packets in front of a chosen one, tells the observer the state that this one
//! meets, and runs it by itself: a burst in pieces does what the whole burst does.

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

/// What is told of packets that are followed. It is called between the calls of elements, and packets wait meanwhile.
pub trait Observer: Send {
    /// A burst of so many packets has come; false: none of them is asked about.
    fn burst(&mut self, packets: usize) -> bool;
    /// Whether this packet, which has come in, is followed.
    fn follows(&mut self, packet: &Sight<'_>) -> bool;
    /// A followed packet comes to an element; `state` is what it meets, none of an element that is no function or whose
    /// state is in two places.
    fn comes(&mut self, element: u64, state: Option<&mut Instance>, packet: &Sight<'_>);
    /// The element has said what becomes of it; the port of the packet is the one that it came in at.
    fn leaves(&mut self, element: u64, packet: &Sight<'_>, fate: Fate);
    /// It is through, with its fate in the chain's ports, and the place of the element that decided.
    fn ends(&mut self, number: u64, fate: Fate, decided: usize);
    /// The elements are others from now on: the observer is dropped.
    fn changed(&mut self);
}

/// Who watches the packets of a worker.
pub type Watch = Option<Box<dyn Observer>>;

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
        let Some(watch) = &mut self.watch else { return };
        if !watch.burst(packets.len()) {
            return;
        }
        for (index, packet) in packets.iter().enumerate() {
            // SAFETY: as the caller promises; the answer is used here only.
            if watch.follows(&unsafe { sight(packet, frames.get(index)) }) {
                self.followed.push(index);
            }
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
                if let Some(watch) = watch {
                    watch.comes(element, running.whole(), &seen);
                }
                packet.port
            } else {
                0
            };
            // SAFETY: as the caller promises: distinct descriptors of this burst.
            work.ticks += unsafe { running.run(pointers, chosen, frames) };
            work.bursts += 1;
            work.packets += pointers.len() as u64;
            if followed && let Some(watch) = watch {
                // SAFETY: as above, and the call is over.
                let packet = unsafe { &*first };
                // SAFETY: as above.
                let seen = Sight {
                    port,
                    ..unsafe { sight(packet, frames.get(index)) }
                };
                watch.leaves(element, &seen, Fate::of(packet));
            }
        }
    }

    /// Tells what became of the followed packets.
    pub(super) fn told(&mut self, packets: &[abi::Packet]) {
        let Some(watch) = &mut self.watch else { return };
        for index in self.followed.drain(..) {
            let end = self.ends.get(index).copied().unwrap_or_default();
            if let Some(packet) = packets.get(index) {
                let fate = match end {
                    End { looped: true, .. } | End { flooded: true, .. } => Fate::Aborted,
                    _ => Fate::of(packet),
                };
                watch.ends(packet.number, fate, end.stage as usize);
            }
        }
    }
}
