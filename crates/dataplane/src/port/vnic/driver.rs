//! The driver: a worker's side of a queue, doing what a poll-mode driver does.
//!
//! Receive reads write-backs until one is not done, fetches the packets ahead, fills in what the
//! worker gets to know of each, and puts empty buffers in the places of the full ones, [`REFILL`] at a
//! time, with one doorbell. Transmit writes descriptors, asks for a completion with every
//! [`THRESHOLD`]th, and rings the doorbell once a turn; buffers come back when the ring runs low. Free
//! buffers are kept last in, first out, for the last one is the warmest.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::device::Device;
use super::ring::{COPIED, DONE, REPORT, Received, Rings, add, unnumbered};
use crate::clock;
use crate::packet::{HEADROOM, SLOT, TAILROOM};
use crate::port::{Departure, Frame, Pool, PortError, Queue, QueueCounts, Sequenced};
use crate::replica::Place;

/// Receive descriptors that are filled again at once, and packets of one receive at most between two
/// refills.
const REFILL: u32 = 32;
/// Transmit descriptors between two that ask for a completion, and free ones below which completions
/// are looked for.
const THRESHOLD: u32 = 32;
/// How many packets ahead of the one at hand are fetched into the cache.
const AHEAD: u32 = 4;

/// A queue of a software NIC.
pub struct Driver {
    rings: Arc<Rings>,
    device: Arc<Device>,
    index: usize,
    pool: Pool,
    stamps: bool,
    /// ticks a packet charged on top
    charge: f64,
    free: Vec<u32>,
    /// which buffer each receive descriptor got
    receive_buffers: Box<[u32]>,
    /// which buffer each transmit descriptor holds
    transmit_buffers: Box<[u32]>,
    receive_next: u32,
    receive_tail: u32,
    transmit_tail: u32,
    /// the oldest transmit descriptor whose buffer has not come back
    transmit_clean: u32,
    /// descriptors since the last that asks for a completion
    since_report: u32,
    /// the doorbell has not been rung since
    pending: bool,
    /// a sequencer numbers the packets: what it said of those that were lent last
    sequenced: Option<Vec<Sequenced>>,
    /// the number of the last packet
    number: u64,
    /// the device hashes as it was told
    told: bool,
}

impl Driver {
    /// Takes a queue into use: every receive descriptor gets a buffer. `charge` in ticks a packet.
    #[must_use]
    pub fn new(
        device: &Arc<Device>,
        index: usize,
        rings: &Arc<Rings>,
        stamps: bool,
        charge: f64,
    ) -> Self {
        let mut driver = Self {
            rings: rings.clone(),
            device: device.clone(),
            index,
            pool: Pool::fresh(),
            stamps,
            charge,
            free: (0..rings.memory.count() as u32).rev().collect(),
            receive_buffers: vec![0; rings.receive.len()].into(),
            transmit_buffers: vec![0; rings.transmit.len()].into(),
            receive_next: 0,
            receive_tail: 0,
            transmit_tail: 0,
            transmit_clean: 0,
            since_report: 0,
            pending: false,
            sequenced: None,
            number: 0,
            told: false,
        };
        while driver.refill() {}
        driver
    }

    /// With a sequencer in front of the device.
    #[must_use]
    pub fn sequenced(mut self, sequenced: bool) -> Self {
        self.sequenced = sequenced.then(Vec::new);
        self
    }

    /// Of a device that hashes as it was told, or not.
    #[must_use]
    pub fn told(mut self, told: bool) -> Self {
        self.told = told;
        self
    }

    /// Gives the device [`REFILL`] empty buffers; false when there is no place or not this many.
    fn refill(&mut self) -> bool {
        let filled = self.receive_tail.wrapping_sub(self.receive_next);
        let room = self.rings.receive.len() as u32 - filled;
        if room < REFILL || self.free.len() < REFILL as usize {
            return false;
        }
        for _ in 0..REFILL {
            let Some(buffer) = self.free.pop() else { break };
            let at = self.receive_tail as usize & (self.receive_buffers.len() - 1);
            if let (Some(place), Some(descriptor), Some(start)) = (
                self.receive_buffers.get_mut(at),
                self.rings.receive.get(at),
                self.rings.memory.buffer(buffer),
            ) {
                *place = buffer;
                let data = start.wrapping_add(HEADROOM);
                descriptor.status.store(0, Ordering::Relaxed);
                let address = data.expose_provenance() as u64;
                descriptor.address.store(address, Ordering::Relaxed);
            }
            self.receive_tail = self.receive_tail.wrapping_add(1);
        }
        let tail = &self.rings.receive_tail.0;
        tail.store(self.receive_tail, Ordering::Release);
        true
    }

    /// Fetches the packet of a position that the device may have filled.
    #[inline]
    fn prefetch(&self, position: u32) {
        let at = position as usize & (self.receive_buffers.len() - 1);
        if let Some(start) = self
            .receive_buffers
            .get(at)
            .and_then(|b| self.rings.memory.buffer(*b))
        {
            super::memory::prefetch(start.wrapping_add(HEADROOM));
        }
    }

    /// Takes back the buffers of transmit descriptors that the device has finished with.
    fn reclaim(&mut self) {
        let waiting = self.transmit_tail.wrapping_sub(self.transmit_clean);
        let mut from = 0;
        // Completions come in order: those up to the last one seen are all done.
        while from < waiting {
            let step = THRESHOLD.min(waiting - from);
            let last = self.transmit_clean.wrapping_add(from + step - 1);
            let done = self
                .rings
                .transmit(last)
                .is_some_and(|descriptor| descriptor.command.load(Ordering::Acquire) & DONE != 0);
            if step < THRESHOLD || !done {
                break;
            }
            from += step;
        }
        self.take_back(from);
    }

    fn take_back(&mut self, count: u32) {
        for _ in 0..count {
            let at = self.transmit_clean as usize & (self.transmit_buffers.len() - 1);
            if let Some(buffer) = self.transmit_buffers.get(at) {
                self.free.push(*buffer);
            }
            self.transmit_clean = self.transmit_clean.wrapping_add(1);
        }
    }

    /// Copies a packet that does not lie in this queue's memory.
    fn copy(&mut self, packet: &Departure) -> Option<(u32, *mut u8)> {
        let room = SLOT - HEADROOM - TAILROOM;
        if packet.length as usize > room + TAILROOM {
            return None;
        }
        let buffer = self.free.pop()?;
        let data = self.rings.memory.buffer(buffer)?.wrapping_add(HEADROOM);
        // SAFETY: the buffer was free, so nobody else uses it, and `length` fits behind its headroom.
        unsafe {
            std::ptr::copy_nonoverlapping(packet.data, data, packet.length as usize);
        }
        Some((buffer, data))
    }

    fn put(&mut self, buffer: u32, address: *const u8, length: u32, flags: u64) {
        let at = self.transmit_tail as usize & (self.transmit_buffers.len() - 1);
        let (Some(place), Some(descriptor)) = (
            self.transmit_buffers.get_mut(at),
            self.rings.transmit.get(at),
        ) else {
            return;
        };
        *place = buffer;
        self.since_report += 1;
        let report = if self.since_report == THRESHOLD {
            self.since_report = 0;
            REPORT
        } else {
            0
        };
        let address = address.expose_provenance() as u64;
        descriptor.address.store(address, Ordering::Relaxed);
        let command = u64::from(length) | flags | report;
        descriptor.command.store(command, Ordering::Relaxed);
        self.transmit_tail = self.transmit_tail.wrapping_add(1);
        self.pending = true;
    }

    fn charge(&self, packets: usize) {
        if self.charge > 0.0 && packets > 0 {
            let until = clock::ticks() + (self.charge * packets as f64) as u64;
            while clock::ticks() < until {
                std::hint::spin_loop();
            }
        }
    }
}

// SAFETY: a frame lies in a buffer of `rings.memory`, which `self.rings` keeps mapped; the device has
// written back its descriptor, so it does not touch the buffer until it is put into a ring again, which
// happens only after the frame came back by `release` or was kept by `transmit`.
unsafe impl Queue for Driver {
    fn lends(&self) -> Option<usize> {
        Some(self.rings.memory.count())
    }

    fn receive(
        &mut self,
        into: &mut Vec<Frame>,
        most: usize,
        before: u64,
    ) -> Result<usize, PortError> {
        if self.rings.driver.polled.load(Ordering::Relaxed) == 0 {
            self.rings.driver.polled.store(1, Ordering::Release);
        }
        let mut count = 0;
        if let Some(sequenced) = &mut self.sequenced {
            sequenced.clear();
        }
        while count < most {
            let Some(descriptor) = self.rings.receive(self.receive_next) else {
                break;
            };
            let filled = self.receive_next != self.receive_tail;
            if !filled {
                break;
            }
            let status = descriptor.status.load(Ordering::Acquire);
            if status & DONE == 0 {
                break;
            }
            let stamp = descriptor.stamp.load(Ordering::Relaxed);
            if self.stamps && stamp >= before {
                break;
            }
            self.prefetch(self.receive_next.wrapping_add(AHEAD));
            let received = Received::unpack(descriptor.address.load(Ordering::Relaxed));
            let at = self.receive_next as usize & (self.receive_buffers.len() - 1);
            let buffer = self.receive_buffers.get(at).copied().unwrap_or(0);
            let Some(floor) = self.rings.memory.buffer(buffer) else {
                break;
            };
            let data = floor.wrapping_add(HEADROOM);
            let word = descriptor.wire.load(Ordering::Relaxed);
            let (wire, number) = unnumbered(word, self.number);
            self.number = number;
            if let Some(sequenced) = &mut self.sequenced {
                let place = Place::of(status & !DONE);
                sequenced.push(Sequenced { place, number });
            }
            into.push(Frame {
                data,
                end: data.wrapping_add(usize::from(received.length)),
                floor,
                ceiling: floor.wrapping_add(SLOT),
                stamp,
                wire,
                port: u32::from(received.port),
                class: 0,
                hops: 0,
                hash: if self.told { received.hash } else { 0 },
                pool: self.pool,
                buffer: u64::from(buffer),
            });
            self.receive_next = self.receive_next.wrapping_add(1);
            count += 1;
        }
        while self.refill() {}
        self.charge(count);
        Ok(count)
    }

    fn sequenced(&self) -> &[Sequenced] {
        self.sequenced.as_deref().unwrap_or(&[])
    }

    fn transmit(&mut self, packets: &mut [Departure]) -> Result<usize, PortError> {
        let mut taken = 0;
        let size = self.rings.transmit.len() as u32;
        for packet in &mut *packets {
            let mut used = self.transmit_tail.wrapping_sub(self.transmit_clean);
            if size - used < THRESHOLD {
                self.reclaim();
                used = self.transmit_tail.wrapping_sub(self.transmit_clean);
            }
            if used == size {
                break;
            }
            if packet.pool == self.pool && packet.may_keep {
                packet.kept = true;
                self.put(packet.buffer as u32, packet.data, packet.length, 0);
            } else {
                if self.free.is_empty() {
                    self.reclaim();
                }
                let Some((buffer, data)) = self.copy(packet) else {
                    break;
                };
                self.put(buffer, data, packet.length, COPIED);
            }
            taken += 1;
        }
        if taken < packets.len() {
            add(&self.rings.driver.refused, (packets.len() - taken) as u64);
        }
        Ok(taken)
    }

    fn flush(&mut self) -> Result<(), PortError> {
        if self.pending {
            let tail = &self.rings.transmit_tail.0;
            tail.store(self.transmit_tail, Ordering::Release);
            self.pending = false;
        }
        // Without packets to receive nothing else asks for the buffers that receive needs.
        if self.free.len() < REFILL as usize {
            self.reclaim();
        }
        Ok(())
    }

    fn release(&mut self, frames: &[Frame]) {
        self.free.extend(frames.iter().map(|f| f.buffer as u32));
    }

    fn close(&mut self) {
        self.device.close(self.index);
    }

    fn ended(&self) -> bool {
        // In this order: what the device delivered before it finished is seen after.
        let finished = self.device.finished(self.index);
        let waiting = self.rings.receive(self.receive_next).is_some_and(|d| {
            self.receive_next != self.receive_tail && d.status.load(Ordering::Acquire) & DONE != 0
        });
        finished && !waiting
    }

    fn next_stamp(&self) -> Option<u64> {
        let descriptor = self.rings.receive(self.receive_next)?;
        let done = descriptor.status.load(Ordering::Acquire) & DONE != 0;
        let waiting = self.stamps && done && self.receive_next != self.receive_tail;
        waiting.then(|| descriptor.stamp.load(Ordering::Relaxed))
    }

    fn idle(&self) -> bool {
        self.rings.transmit_head.0.load(Ordering::Acquire) == self.transmit_tail
    }

    fn counts(&self) -> QueueCounts {
        QueueCounts {
            missed: self.rings.device.missed.load(Ordering::Relaxed),
            unfit: self.rings.device.unfit.load(Ordering::Relaxed),
            ..QueueCounts::default()
        }
    }

    fn memory(&self) -> u64 {
        self.rings.memory.bytes()
    }
}
