//! What happens to a burst after the functions: packets leave, and each gets its one fate.

use super::chain::End;
use super::counters::{Counters, Host, Numbered, OfPort, Once, Places};
use super::stage::Stage;
use super::turn::Served;
use crate::module::abi;
use crate::packet::MAX_BURST;
use crate::port::{Departure, Frame, PortError};

/// Packets that leave through one queue.
#[derive(Default)]
pub struct Leaving {
    /// the packets
    pub packets: Vec<Departure>,
    /// for each, its place in the burst
    pub index: Vec<usize>,
}

/// What a queue did with the packets that were to leave through it.
pub struct Sent {
    /// this many it took, the first ones
    pub taken: usize,
    /// why it did not take the rest
    pub why: Host,
    /// how it failed
    pub error: Option<PortError>,
}

/// What is decided about a packet and waits for its transmission.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Pending {
    /// its fate is counted
    Settled,
    /// it is to leave
    Leaves,
}

/// Sorts a burst by where its packets go.
#[derive(Default)]
pub struct Delivery {
    /// a queue each
    pub leaving: Vec<Leaving>,
    pending: Vec<Pending>,
    /// copies of each packet that have left
    copies: Vec<u32>,
    /// the last reason for which a copy of it could not leave
    why: Vec<Host>,
    /// whether a transmit kept its buffer
    pub kept: Vec<bool>,
}

/// Where ports lead.
pub struct Wiring {
    /// for each port of the chain, its queue; none: what is sent there is counted and gone
    pub of_port: Vec<Option<usize>>,
    /// the queue of packets for the host's own stack, if they go anywhere
    pub pass: Option<usize>,
}

/// The counters of a worker and where each stands.
pub struct Count<'a> {
    /// its number; none where drops are on nobody's account
    pub worker: Option<usize>,
    /// the counters
    pub counters: &'a Counters,
    /// their places
    pub places: &'a Places,
    /// where reasons that the program did not declare are counted by number; none: all of them together
    pub numbered: Option<&'a Numbered>,
}

/// Ports whose packets are summed before they are counted.
const NEAR: usize = 8;

/// Packets of a burst that are counted alike, by port: summed here, and counted at the end, since a burst has few ports and
/// many packets.
pub struct Row<'a> {
    count: &'a Count<'a>,
    what: (OfPort, Option<OfPort>),
    /// of the first ports, packets times [`PACKET`] and bytes: one addition a packet
    sums: [u64; NEAR],
}

/// A packet in a sum. All bytes of a burst are fewer: it has [`MAX_BURST`] packets of at most 2^17 bytes, rooms included.
const PACKET: u64 = 1 << 32;
const _: () = assert!((MAX_BURST as u64) << 17 < PACKET);

impl Row<'_> {
    /// A packet of a port, of this many bytes.
    #[inline]
    pub fn add(&mut self, port: u32, bytes: u64) {
        match self.sums.get_mut(port as usize) {
            Some(sum) => *sum += PACKET | bytes,
            None => self.end(port, PACKET | bytes),
        }
    }

    fn end(&self, port: u32, sum: u64) {
        self.count.port(port, self.what.0, sum / PACKET);
        if let Some(what) = self.what.1 {
            self.count.port(port, what, sum % PACKET);
        }
    }
}

impl Drop for Row<'_> {
    fn drop(&mut self) {
        let sums = self.sums.iter().take(self.count.places.ports());
        for (port, sum) in (0..).zip(sums).filter(|(_, sum)| **sum > 0) {
            self.end(port, *sum);
        }
    }
}

impl Count<'_> {
    /// Adds to a port's count.
    #[inline]
    pub fn port(&self, port: u32, what: OfPort, value: u64) {
        self.counters
            .add(self.places.port(port as usize, what), value);
    }

    /// Adds to a count that there is once.
    #[inline]
    pub fn once(&self, what: Once, value: u64) {
        self.counters.add(self.places.once(what), value);
    }

    fn because(&self, reason: Host) {
        self.counters.add(self.places.host(reason), 1);
    }

    fn aborted(&self, port: u32, reason: Host) {
        self.because(reason);
        self.port(port, OfPort::Aborted, 1);
    }

    /// Counts packets of a port that were dropped before a function saw them.
    #[cold]
    pub fn unseen(&self, port: u32, reason: Host, (packets, bytes): (u64, u64)) {
        self.port(port, OfPort::Read, packets);
        self.port(port, OfPort::ReadBytes, bytes);
        self.port(port, OfPort::Dropped, packets);
        self.counters.add(self.places.host(reason), packets);
    }

    /// Counts packets of a burst by port, all of a port at once.
    #[inline]
    pub fn row(&self, packets: OfPort, bytes: Option<OfPort>) -> Row<'_> {
        Row {
            count: self,
            what: (packets, bytes),
            sums: [0; NEAR],
        }
    }

    /// Where a packet goes; what stays is counted. `frame` is the packet as it came in.
    #[inline(always)]
    fn fate(
        &self,
        frame: &Frame,
        packet: &abi::Packet,
        end: End,
        ports: u32,
        stages: &[Stage],
    ) -> Goes {
        let within = frame.holds(packet);
        match packet.fate {
            abi::fate::FORWARD if within && packet.out < ports => Goes::To(packet.out),
            abi::fate::FLOOD if within && ports >= 2 => Goes::Around,
            _ => self.stays(frame.port, packet, end, within, stages),
        }
    }

    /// Counts a packet that leaves at no port.
    fn stays(
        &self,
        from: u32,
        packet: &abi::Packet,
        end: End,
        within: bool,
        stages: &[Stage],
    ) -> Goes {
        match packet.fate {
            _ if !within => self.aborted(from, Host::Aborted),
            abi::fate::FORWARD => self.aborted(from, Host::NoSuchPort),
            abi::fate::FLOOD => self.dropped(from, Host::NoOtherPort),
            abi::fate::DROP if end.refused => self.dropped(from, Host::SlowFull),
            abi::fate::DROP => {
                let stage = stages.get(end.stage as usize);
                let reason = packet.out as usize;
                if stage.is_some_and(|s| s.life.dropped(self.worker, reason)) {
                    self.port(from, OfPort::Dropped, 1);
                } else {
                    self.undeclared(from, packet.out);
                }
            }
            abi::fate::PASS => {
                self.port(from, OfPort::Passed, 1);
                return Goes::Up;
            }
            abi::fate::CONSUME => self.port(from, OfPort::Consumed, 1),
            _ if end.flooded => self.aborted(from, Host::ChainFlood),
            _ if end.looped => self.aborted(from, Host::ChainLoop),
            _ => self.aborted(from, Host::Aborted),
        }
        Goes::Nowhere
    }

    /// Counts a burst of a run over captures, where what is to leave has left, since its queue is never full: what came,
    /// and what became of it.
    pub fn burst(
        &self,
        ports: u32,
        entered: &[Frame],
        packets: &[abi::Packet],
        ends: &[End],
        stages: &[Stage],
    ) {
        let mut read = self.row(OfPort::Read, Some(OfPort::ReadBytes));
        let mut forwarded = self.row(OfPort::Forwarded, None);
        let mut sent = self.row(OfPort::Sent, Some(OfPort::SentBytes));
        for ((frame, packet), end) in entered.iter().zip(packets).zip(ends) {
            read.add(frame.port, frame.length() as u64);
            match self.fate(frame, packet, *end, ports, stages) {
                Goes::Nowhere | Goes::Up => {}
                Goes::To(port) => {
                    forwarded.add(frame.port, 0);
                    sent.add(port, length(packet));
                }
                Goes::Around => {
                    forwarded.add(frame.port, 0);
                    for port in (0..ports).filter(|p| *p != frame.port) {
                        sent.add(port, length(packet));
                    }
                    self.once(Once::Created, u64::from(ports - 2));
                }
            }
        }
    }

    /// Counts a packet that was dropped for a reason which the program did not declare.
    fn undeclared(&self, port: u32, reason: u32) {
        match (self.numbered, self.worker) {
            (Some(numbered), Some(worker)) => {
                numbered.add(worker, reason);
                self.port(port, OfPort::Dropped, 1);
            }
            _ => self.dropped(port, Host::Undeclared),
        }
    }

    fn dropped(&self, port: u32, reason: Host) {
        self.because(reason);
        self.port(port, OfPort::Dropped, 1);
    }
}

/// Where a packet goes.
enum Goes {
    /// to no port; it is counted
    Nowhere,
    /// to a port
    To(u32),
    /// to all other ports
    Around,
    /// to the host's own stack; it is counted
    Up,
}

impl Delivery {
    /// For this many queues.
    #[must_use]
    pub fn new(queues: usize) -> Self {
        Self {
            leaving: (0..queues).map(|_| Leaving::default()).collect(),
            ..Self::default()
        }
    }

    /// Settles what stays and lists what leaves. `entered` are the frames as they came in.
    pub fn sort(
        &mut self,
        wiring: &Wiring,
        entered: &[Frame],
        packets: &[abi::Packet],
        ends: &[End],
        stages: &[Stage],
        count: &Count<'_>,
    ) {
        let ports = wiring.of_port.len() as u32;
        self.pending.clear();
        self.copies.clear();
        self.why.clear();
        self.kept.clear();
        self.pending.resize(entered.len(), Pending::Settled);
        self.copies.resize(entered.len(), 0);
        self.why.resize(entered.len(), Host::TxFull);
        self.kept.resize(entered.len(), false);
        for leaving in &mut self.leaving {
            leaving.packets.clear();
            leaving.index.clear();
        }
        for (index, ((frame, packet), end)) in entered.iter().zip(packets).zip(ends).enumerate() {
            match count.fate(frame, packet, *end, ports, stages) {
                Goes::Nowhere => {}
                Goes::To(port) => self.leave(index, frame, packet, port, true, wiring),
                Goes::Around => {
                    for port in (0..ports).filter(|p| *p != frame.port) {
                        self.leave(index, frame, packet, port, ports == 2, wiring);
                    }
                }
                Goes::Up => {
                    if let Some(queue) = wiring.pass {
                        // Its fate is settled: what the host's queue does not take is not sent.
                        self.depart(queue, index, frame, packet, frame.port, true);
                    }
                }
            }
        }
    }

    fn leave(
        &mut self,
        index: usize,
        frame: &Frame,
        packet: &abi::Packet,
        port: u32,
        only: bool,
        wiring: &Wiring,
    ) {
        if let Some(pending) = self.pending.get_mut(index) {
            *pending = Pending::Leaves;
        }
        match wiring.of_port.get(port as usize).copied().flatten() {
            Some(queue) => self.depart(queue, index, frame, packet, port, only),
            // Nothing stands behind this port: it is counted as sent.
            None => {
                if let Some(copies) = self.copies.get_mut(index) {
                    *copies += 1;
                }
            }
        }
    }

    fn depart(
        &mut self,
        queue: usize,
        index: usize,
        frame: &Frame,
        packet: &abi::Packet,
        port: u32,
        may_keep: bool,
    ) {
        let Some(leaving) = self.leaving.get_mut(queue) else {
            return;
        };
        let length = length(packet) as u32;
        let came = frame.length() as u32;
        leaving.packets.push(Departure {
            data: packet.data,
            length,
            // A packet that was cut by a capture and then rewritten keeps what was cut off its end.
            wire: length.saturating_add(frame.wire.saturating_sub(came)),
            stamp: if frame.stamp == 0 {
                packet.time
            } else {
                frame.stamp
            },
            port,
            pool: frame.pool,
            buffer: frame.buffer,
            may_keep,
            kept: false,
        });
        leaving.index.push(index);
    }

    /// Sends what leaves through one queue: once more after a flush if it was full.
    pub fn transmit(&mut self, queue: usize, served: &mut Served) -> Sent {
        let mut sent = Sent {
            taken: 0,
            why: Host::TxFull,
            error: None,
        };
        let Some(leaving) = self.leaving.get_mut(queue) else {
            return sent;
        };
        if leaving.packets.is_empty() {
            return sent;
        }
        if served.failed {
            sent.why = Host::PortFailed;
            return sent;
        }
        for attempt in 0..2 {
            let rest = leaving.packets.get_mut(sent.taken..).unwrap_or_default();
            let result = served.queue.transmit(rest).and_then(|n| {
                sent.taken += n;
                let full = attempt == 0 && sent.taken < leaving.packets.len();
                if full { served.queue.flush() } else { Ok(()) }
            });
            if let Err(error) = result {
                sent.why = Host::PortFailed;
                sent.error = Some(error);
                break;
            }
            if sent.taken == leaving.packets.len() {
                break;
            }
        }
        sent
    }

    /// Notes that a queue took this many of its packets; the rest are lost for this reason.
    pub fn taken(&mut self, queue: usize, taken: usize, rest: Host, pass: bool, count: &Count<'_>) {
        let Some(leaving) = self.leaving.get(queue) else {
            return;
        };
        let mut row = count.row(OfPort::Sent, Some(OfPort::SentBytes));
        for (place, (packet, index)) in leaving.packets.iter().zip(&leaving.index).enumerate() {
            if packet.kept
                && let Some(kept) = self.kept.get_mut(*index)
            {
                *kept = true;
            }
            // The host's own stack is no port of the function.
            if pass && self.pending.get(*index) == Some(&Pending::Settled) {
                continue;
            }
            if place < taken {
                row.add(packet.port, u64::from(packet.length));
                if let Some(copies) = self.copies.get_mut(*index) {
                    *copies += 1;
                }
            } else if let Some(why) = self.why.get_mut(*index) {
                *why = rest;
            }
        }
    }

    /// Settles the packets that were to leave: forwarded when at least one copy left.
    pub fn settle(
        &mut self,
        entered: &[Frame],
        wiring: &Wiring,
        count: &Count<'_>,
        packets: &[abi::Packet],
    ) {
        let loose = wiring.of_port.iter().any(Option::is_none);
        let mut row = count.row(OfPort::Forwarded, None);
        for (index, frame) in entered.iter().enumerate() {
            if self.pending.get(index) != Some(&Pending::Leaves) {
                continue;
            }
            let copies = self.copies.get(index).copied().unwrap_or(0);
            if copies == 0 {
                let why = self.why.get(index).copied().unwrap_or(Host::TxFull);
                count.dropped(frame.port, why);
                continue;
            }
            row.add(frame.port, 0);
            if copies > 1 {
                count.once(Once::Created, u64::from(copies - 1));
            }
            if loose && let Some(packet) = packets.get(index) {
                self.nowhere(frame, packet, wiring, count);
            }
        }
    }

    /// Counts what was sent to ports behind which nothing stands.
    fn nowhere(&self, frame: &Frame, packet: &abi::Packet, wiring: &Wiring, count: &Count<'_>) {
        let length = length(packet);
        let ports = wiring.of_port.iter().enumerate();
        for (port, _) in ports.filter(|(_, queue)| queue.is_none()) {
            let port = port as u32;
            let goes = match packet.fate {
                abi::fate::FORWARD => packet.out == port,
                _ => port != frame.port,
            };
            if goes {
                count.port(port, OfPort::Sent, 1);
                count.port(port, OfPort::SentBytes, length);
            }
        }
    }
}

/// Bytes of a packet that lies in its buffer.
fn length(packet: &abi::Packet) -> u64 {
    packet.end.addr().saturating_sub(packet.data.addr()) as u64
}
