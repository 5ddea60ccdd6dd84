//! Windows of the input: what passes between the sequencer and the workers' queues.

use crate::module::{Record, abi};
use crate::packet::{Arrival, Burst, Fate, Layout};
use crate::port::{Buffers, Departure, Frame};

/// Something that a worker's queue comes to.
pub enum Step {
    /// packets to run over together
    Packets(Parcel),
    /// a timer is due before a packet of this time (ns), whoever has that packet
    Mark(u64),
}

/// Packets of one burst and, once the worker has run over them, what leaves.
pub struct Parcel {
    buffers: Buffers,
    /// the packets in their order; lent to the worker from `Lane::receive` on. A frame's buffer is its place here
    pub frames: Vec<Frame>,
    /// for each packet, its ingress number and the time that the function sees, ns
    pub order: Vec<(u64, u64)>,
    /// in the order of the packets
    pub leaving: Vec<Departure>,
    /// a packet each, where fates are written
    pub told: Vec<Told>,
}

// SAFETY: frames and departures are addresses of the parcel's own buffers, which move with it.
unsafe impl Send for Parcel {}

/// What became of a packet.
#[derive(Clone, Copy, Debug)]
pub struct Told {
    /// ingress number from 0, over all ports
    pub number: u64,
    /// ingress port
    pub port: u32,
    /// the packet's own stamp, ns since the epoch
    pub stamp: u64,
    /// the time that the function saw, ns since the epoch
    pub time: u64,
    /// where workers share state, its place in the order of packets
    pub commit: u64,
    /// what the function decided
    pub fate: Fate,
}

impl Parcel {
    /// Takes a packet in; false when it is longer than the function takes.
    fn add(&mut self, data: &[u8], arrival: &Arrival) -> bool {
        let Some(frame) = self.buffers.copy(data) else {
            return false;
        };
        self.frames.push(Frame {
            stamp: arrival.stamp,
            wire: arrival.wire,
            port: arrival.port,
            buffer: self.order.len() as u64,
            ..frame
        });
        self.order.push((arrival.number, arrival.time));
        true
    }

    /// Notes what the function has decided of each packet, and in which order workers could have run them, if there
    /// are several (`commits`).
    pub fn tell(&mut self, frames: &[Frame], packets: &[abi::Packet], commits: bool) {
        let each = frames.iter().zip(packets).zip(&self.order);
        self.told
            .extend(each.map(|((frame, packet), (number, time))| Told {
                number: *number,
                port: frame.port,
                stamp: frame.stamp,
                time: if commits { packet.time } else { *time },
                commit: if commits { packet.commit } else { 0 },
                fate: match frame.holds(packet) {
                    true => Fate::of(packet),
                    false => Fate::Aborted,
                },
            }));
    }
}

/// A record that came out of a ring buffer.
pub struct Kept {
    /// the ingress number of the last packet before it came out
    pub after: u64,
    /// the time of that packet, ns
    pub time: u64,
    /// the record
    pub record: Record,
}

/// What one worker does in one window, and after that what came of it.
#[derive(Default)]
pub struct Batch {
    /// in this order
    pub steps: Vec<Step>,
    /// the run's clock at the end of the window, ns
    pub clock: u64,
    /// records, in the order in which they came out
    pub records: Vec<Kept>,
    /// whether the entries of divided objects are to be counted at the end of the window
    pub count: bool,
    /// of each divided object, what is known of its part at the end of the window
    pub parts: Vec<Part>,
}

impl Batch {
    /// The packets of a step, if it has any.
    pub fn parcel(&mut self, step: usize) -> Option<&mut Parcel> {
        match self.steps.get_mut(step)? {
            Step::Packets(parcel) => Some(parcel),
            Step::Mark(_) => None,
        }
    }
}

/// A worker's part of a divided object.
#[derive(Clone, Copy, Default)]
pub struct Part {
    /// insertions in the window that found it full
    pub full: u64,
    /// entries, if they were counted
    pub entries: Option<u64>,
}

/// A window of the input: packets next to each other, by who has them.
#[derive(Default)]
pub struct Window {
    /// the time of the first of them, ns
    pub begin: u64,
    /// of each packet in ingress order, its worker
    pub owners: Vec<u32>,
    /// a worker each
    pub batches: Vec<Batch>,
}

impl Window {
    /// Whether nothing is to be done in it, not even a timer.
    pub fn is_empty(&self) -> bool {
        self.owners.is_empty() && self.batches.iter().all(|b| b.steps.is_empty())
    }
}

/// Parcels and windows that are used again.
pub struct Pool {
    /// a worker each, whose processor's memory they may lie in
    free: Vec<Vec<Parcel>>,
    windows: Vec<Window>,
    capacity: usize,
    layout: Layout,
    made: u64,
}

impl Pool {
    /// For so many workers, bursts of this many packets.
    pub fn new(workers: usize, capacity: usize, layout: Layout) -> Self {
        Self {
            free: (0..workers).map(|_| Vec::new()).collect(),
            windows: Vec::new(),
            capacity,
            layout,
            made: 0,
        }
    }

    /// A window without packets.
    pub fn window(&mut self, count: bool) -> Window {
        let mut window = self.windows.pop().unwrap_or_default();
        window.batches.resize_with(self.free.len(), Batch::default);
        for batch in &mut window.batches {
            batch.count = count;
        }
        window
    }

    /// Puts a packet behind what a worker has to do; false when the function does not take it.
    pub fn add(
        &mut self,
        batch: &mut Batch,
        worker: usize,
        data: &[u8],
        arrival: &Arrival,
    ) -> bool {
        if let Some(Step::Packets(parcel)) = batch.steps.last_mut()
            && parcel.order.len() < self.capacity
        {
            return parcel.add(data, arrival);
        }
        let free = self.free.get_mut(worker).and_then(Vec::pop);
        let mut parcel = free.unwrap_or_else(|| {
            self.made += 1;
            Parcel {
                buffers: Buffers::new(self.capacity, 0, self.layout),
                frames: Vec::with_capacity(self.capacity),
                order: Vec::with_capacity(self.capacity),
                leaving: Vec::with_capacity(self.capacity),
                told: Vec::new(),
            }
        });
        let taken = parcel.add(data, arrival);
        if taken {
            batch.steps.push(Step::Packets(parcel));
        } else if let Some(free) = self.free.get_mut(worker) {
            free.push(parcel);
        }
        taken
    }

    /// Takes a window back, nothing of which is lent any more.
    pub fn reclaim(&mut self, mut window: Window) {
        window.owners.clear();
        for (batch, free) in window.batches.iter_mut().zip(&mut self.free) {
            for step in batch.steps.drain(..) {
                let Step::Packets(mut parcel) = step else {
                    continue;
                };
                parcel.buffers.reclaim();
                parcel.frames.clear();
                parcel.order.clear();
                parcel.leaving.clear();
                parcel.told.clear();
                free.push(parcel);
            }
            batch.records.clear();
            batch.parts.clear();
        }
        self.windows.push(window);
    }

    /// Bytes of the parcels there are.
    pub fn bytes(&self) -> u64 {
        self.made * Burst::bytes(self.capacity)
    }
}
