//! Packets that foreign elements send of their own: they go on along the line from there, and leave as others do,
//! but no port has read them, so that they have no fate: what leaves of them is counted as created.

use super::chain::Chain;
use super::counters::{Counters, OfPort, OfStage, Once};
use super::deliver::Count;
use super::shared::Shared;
use super::turn::Worker;
use crate::module::abi;
use crate::packet::MAX_BURST;
use crate::port::{Frame, Pool};

/// Bytes before and behind each packet that functions may let it grow into.
const ROOM: usize = 256;

/// A packet that was made: which function made it, its packet class, where it leaves that function, and where its bytes
/// lie, with room around them.
type Piece = (usize, u16, u16, std::ops::Range<usize>);

/// Packets that were made and have not left.
pub struct Made {
    each: Vec<Piece>,
    bytes: Vec<u8>,
    frames: Vec<Frame>,
    descriptors: Vec<abi::Packet>,
    /// what their way is counted on, which is nobody's account
    counters: Counters,
    pool: Pool,
}

impl Made {
    /// None yet.
    pub fn new(shared: &Shared) -> Self {
        Self {
            each: Vec::new(),
            bytes: Vec::new(),
            frames: Vec::new(),
            descriptors: Vec::new(),
            counters: Counters::new(shared.places.count()),
            pool: Pool::fresh(),
        }
    }

    /// Takes what the functions of a chain have made.
    fn take(&mut self, chain: &mut Chain, after: bool) -> bool {
        self.each.clear();
        self.bytes.clear();
        for (index, stage) in chain.stages.iter_mut().enumerate() {
            stage.sent(after, &mut |class, port, packet| {
                self.bytes.resize(self.bytes.len() + ROOM, 0);
                let begin = self.bytes.len();
                self.bytes.extend_from_slice(packet);
                let end = self.bytes.len();
                self.bytes.resize(end + ROOM, 0);
                self.each.push((index, class, port, begin..end));
            });
        }
        !self.each.is_empty()
    }
}

impl Worker {
    /// Sends what the functions have made of their own, before the last burst's packets or (`after`) behind them.
    pub(super) fn emit(&mut self, after: bool) {
        if !self.made.take(&mut self.chain, after) {
            return;
        }
        // What the last burst has come to is still to be delivered.
        let ends = std::mem::take(&mut self.chain.ends);
        let each = std::mem::take(&mut self.made.each);
        for part in each.chunks(MAX_BURST) {
            for of_stage in part.chunk_by(|a, b| a.0 == b.0) {
                self.emit_from(of_stage);
            }
        }
        self.made.each = each;
        self.chain.ends = ends;
    }

    /// Packets that one function has made.
    fn emit_from(&mut self, packets: &[Piece]) {
        let Some((stage, ..)) = packets.first() else {
            return;
        };
        let ports = self.wiring.of_port.len() as u32;
        let made = &mut self.made;
        made.frames.clear();
        made.descriptors.clear();
        let base = made.bytes.as_mut_ptr();
        for (buffer, (_, class, out, range)) in packets.iter().enumerate() {
            // Within `bytes`, with the room that `take` has left around each packet.
            let (data, end) = (base.wrapping_add(range.start), base.wrapping_add(range.end));
            let (floor, ceiling) = (data.wrapping_sub(ROOM), end.wrapping_add(ROOM));
            made.frames.push(Frame {
                data,
                end,
                floor,
                ceiling,
                stamp: self.clock,
                wire: range.len() as u32,
                port: 1 - u32::from(*out).min(1),
                class: *class,
                hash: 0,
                hops: 0,
                pool: made.pool,
                buffer: buffer as u64,
            });
            made.descriptors.push(abi::Packet {
                data,
                end,
                meta: data,
                floor,
                ceiling,
                bared: data,
                time: self.clock,
                number: self.received * self.workers as u64 + self.number as u64,
                port: 1 - u32::from(*out).min(1),
                queue: self.number as u32,
                ports,
                cpu: self.number as u32,
                fate: abi::fate::FORWARD,
                out: u32::from(*out),
                ..abi::Packet::empty()
            });
        }
        // SAFETY: each descriptor names bytes of its own in `made.bytes`, which nothing else touches or moves until
        // all have left.
        unsafe {
            self.chain.emit(*stage, &mut made.descriptors, &made.frames);
        }
        for (stage, work) in self.chain.stages.iter().zip(&self.chain.work) {
            stage.life.add(self.number, OfStage::Packets, work.packets);
            stage.life.add(self.number, OfStage::Bursts, work.bursts);
            stage.life.add(self.number, OfStage::Ticks, work.ticks);
        }
        self.deliver_made();
        // What left is told; what did not is nobody's packet.
        let shared = &*self.shared;
        let count = shared.count(self.number);
        let take = |place| self.made.counters.take(place);
        for port in 0..ports {
            for what in [OfPort::Sent, OfPort::SentBytes] {
                count.port(port, what, take(shared.places.port(port as usize, what)));
            }
            let left = take(shared.places.port(port as usize, OfPort::Forwarded));
            count.once(Once::Created, left);
        }
        count.once(Once::Created, take(shared.places.once(Once::Created)));
    }

    fn deliver_made(&mut self) {
        let shared = &*self.shared;
        let made = &self.made;
        let count = Count {
            worker: None,
            counters: &made.counters,
            places: &shared.places,
            numbered: None,
        };
        let delivery = &mut self.delivery;
        delivery.sort(
            &self.wiring,
            &made.frames,
            &made.descriptors,
            &self.chain.ends,
            &self.chain.stages,
            &count,
        );
        for (queue, served) in self.queues.iter_mut().enumerate() {
            let sent = delivery.transmit(queue, served);
            if let Some(error) = sent.error {
                super::turn::fail(shared, served, &mut self.failures, &error);
            }
            let pass = self.wiring.pass == Some(queue);
            delivery.taken(queue, sent.taken, sent.why, pass, &count);
        }
        delivery.settle(&made.frames, &self.wiring, &count, &made.descriptors);
    }
}
