//! Reception of a burst, and what is made known of its packets before the functions run.

use super::{Worker, bytes, lane_of};
use crate::classes::away::Refusal;
use crate::clock::now;
use crate::module::abi;
use crate::worker::counters::{OfPort, Once};

impl Worker {
    pub(super) fn receive(&mut self, index: usize) -> usize {
        let before = self.next_timer();
        self.frames.clear();
        let Some(served) = self.queues.get_mut(index).filter(|s| !s.failed) else {
            return 0;
        };
        let most = match self.limit {
            Some(limit) => self.shared.limit.claim(limit, self.burst),
            None => self.burst,
        };
        let result = match lane_of(served, self.sequenced) {
            Some(lane) => {
                Ok(lane.receive_described(&mut self.frames, &mut self.descriptors, before))
            }
            None => served.queue.receive(&mut self.frames, most, before),
        };
        if self.limit.is_some() {
            self.shared.limit.settle(most, self.frames.len());
        }
        if let Err(error) = result {
            self.fail(index, &error);
        }
        if self.peers {
            self.refused(index);
        }
        if self.frames.is_empty() {
            return 0;
        }
        if self.sequenced {
            self.described();
        } else {
            self.describe(index);
        }
        // Before the functions change them.
        self.find_homes();
        self.count_entry();
        let packets = self.descriptors.get_mut(..self.frames.len());
        // SAFETY: there is a descriptor for each frame, which its queue lends us until it is given back
        // below, and frames do not overlap (`Queue`).
        unsafe { self.chain.run(packets.unwrap_or_default(), &self.frames) };
        self.account_work();
        if self.group.is_some() {
            self.replicated();
        }
        let received = self.frames.len();
        self.hand_over();
        self.emit(false);
        self.deliver();
        self.give_back(index);
        self.emit(true);
        received
    }

    /// Counts what a queue received and no worker gets, where other machines have buckets.
    fn refused(&mut self, index: usize) {
        let count = self.shared.count(self.number);
        if let Some(served) = self.queues.get_mut(index) {
            let mut each = |port, why: Refusal, packets, bytes| {
                count.unseen(port, why.into(), (packets, bytes));
            };
            served.queue.refused(&mut each);
        }
    }

    /// Takes a burst of a run over captures, whose sequencer writes descriptors and counts what is out of order. What came
    /// is counted with what becomes of it.
    pub(super) fn described(&mut self) {
        let count = self.shared.count(self.number);
        self.clock = self.descriptors.last().map_or(self.clock, |p| p.time);
        self.received += self.frames.len() as u64;
        count.once(Once::Bursts, 1);
        count.once(Once::Packets, self.frames.len() as u64);
    }

    /// Says of each packet under which index it came, where a function goes by that.
    pub(super) fn find_homes(&mut self) {
        let Some(homes) = &self.homes else {
            return;
        };
        for (frame, packet) in self.frames.iter().zip(&mut self.descriptors) {
            packet.home = homes.of(frame.port, bytes(frame));
        }
    }

    /// Writes the descriptors of the burst and counts what came.
    pub(super) fn describe(&mut self, index: usize) {
        let keeps_time = self.queues.get(index).is_some_and(|s| s.queue.keeps_time());
        let count = self.shared.count(self.number);
        let ports = self.wiring.of_port.len() as u32;
        let (this, workers) = (self.number as u32, self.workers as u64);
        let (mut clock, mut number) = (self.clock, self.received * workers + u64::from(this));
        let (mut burst_time, mut before) = (None, 0);
        let mut row = count.row(OfPort::Read, Some(OfPort::ReadBytes));
        self.descriptors.clear();
        self.descriptors.extend(self.frames.iter().map(|frame| {
            let stamp = match frame.stamp {
                0 => *burst_time.get_or_insert_with(now),
                stamp => stamp,
            };
            before += u64::from(keeps_time && stamp < clock);
            clock = clock.max(stamp).min(abi::LATEST);
            row.add(frame.port, frame.length() as u64);
            let packet = abi::Packet {
                data: frame.data,
                end: frame.end,
                meta: frame.data,
                floor: frame.floor,
                ceiling: frame.ceiling,
                bared: frame.data,
                time: clock,
                // Unlike any other worker's, and the same from run to run on one worker.
                number,
                port: frame.port,
                queue: this,
                ports,
                cpu: this,
                ..abi::Packet::empty()
            };
            number = number.wrapping_add(workers);
            packet
        }));
        drop(row);
        self.clock = clock;
        self.received += self.frames.len() as u64;
        if let Some(served) = self.queues.get(index).filter(|_| self.group.is_some()) {
            let each = self.descriptors.iter_mut().zip(served.queue.sequenced());
            for (packet, sequenced) in each {
                packet.number = sequenced.number;
                packet.commit = sequenced.place.word();
            }
        }
        count.once(Once::OutOfOrder, before);
        count.once(Once::Bursts, 1);
        count.once(Once::Packets, self.frames.len() as u64);
        // Live time goes on between bursts; for packets with their own time `before` keeps this false.
        if self.next_timer() <= self.clock {
            self.fire(self.clock);
        }
    }

    /// Counts the burst, if it is drawn, under the entry of the indirection table that one of its packets has.
    pub(super) fn count_entry(&mut self) {
        let Some(entries) = &mut self.entries else {
            return;
        };
        let Some((at, packets)) = entries.drawn(self.frames.len()) else {
            return;
        };
        if let Some(frame) = self.frames.get(at) {
            if let Some(mover) = &self.mover {
                mover.sampled(frame.class, packets);
            }
            entries.count(frame.port, bytes(frame), packets);
        }
    }
}
