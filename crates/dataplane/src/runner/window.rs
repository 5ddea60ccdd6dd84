//! Windows of the input: what passes between the sequencer and the workers' queues.
//!
//! Windows and batches are passed on by address: one is handed over for every burst of an only worker.
#![allow(clippy::vec_box, reason = "they move from list to list")]

use crate::module::Record;
use crate::packet::{Arrival, Burst, Layout};

/// Something that a worker's queue comes to.
pub enum Step {
    /// packets to run over together
    Burst(Burst),
    /// a timer is due before a packet of this time (ns), whoever has that packet
    Mark(u64),
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
    /// where state is replicated, the last row at the end of the window; else 0
    pub upto: u64,
    /// records, in the order in which they came out
    pub records: Vec<Kept>,
    /// whether the entries of divided objects are to be counted at the end of the window
    pub count: bool,
    /// of each divided object, what is known of its part at the end of the window
    pub parts: Vec<Part>,
}

impl Batch {
    /// The packets of a step, if it has any.
    pub fn burst(&mut self, step: usize) -> Option<&mut Burst> {
        match self.steps.get_mut(step)? {
            Step::Burst(burst) => Some(burst),
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
    /// packets in it
    pub packets: usize,
    /// in ingress order: a worker, and how many neighbouring packets it has
    pub rows: Vec<(u32, usize)>,
    /// a worker each
    pub batches: Vec<Box<Batch>>,
    /// there are rows in it that are no packet's
    pub beats: bool,
}

impl Window {
    /// Counts a packet that a worker has.
    #[inline]
    pub fn came(&mut self, owner: u32) {
        self.packets += 1;
        match self.rows.last_mut() {
            Some((last, packets)) if *last == owner => *packets += 1,
            _ => self.rows.push((owner, 1)),
        }
    }

    /// Whether nothing is to be done in it, not even a timer.
    pub fn is_empty(&self) -> bool {
        self.packets == 0 && !self.beats && self.batches.iter().all(|b| b.steps.is_empty())
    }
}

/// Bursts and windows that are used again.
pub struct Pool {
    /// a worker each, whose processor's memory they may lie in
    free: Vec<Vec<Burst>>,
    windows: Vec<Box<Window>>,
    capacity: usize,
    ports: u32,
    layout: Layout,
    made: u64,
}

impl Pool {
    /// For this many workers, bursts of this many packets of a function of this many ports.
    pub fn new(workers: usize, capacity: usize, ports: u32, layout: Layout) -> Self {
        Self {
            free: (0..workers).map(|_| Vec::new()).collect(),
            windows: Vec::new(),
            capacity,
            ports,
            layout,
            made: 0,
        }
    }

    /// A window to gather packets in later.
    pub fn window(&mut self) -> Box<Window> {
        self.windows.pop().unwrap_or_default()
    }

    /// Prepares a window that has no packets; whether entries are to be counted at its end.
    pub fn begin(&mut self, window: &mut Window, count: bool) {
        window.batches.resize_with(self.free.len(), Box::default);
        for batch in &mut window.batches {
            batch.count = count;
            batch.upto = 0;
        }
    }

    /// Puts a packet behind what a worker has to do; false when the function does not take it.
    #[inline]
    pub fn add(&mut self, batch: &mut Batch, worker: usize, data: &[u8], arrival: Arrival) -> bool {
        if !matches!(batch.steps.last(), Some(Step::Burst(burst)) if !burst.is_full()) {
            let burst = self.burst(worker);
            batch.steps.push(Step::Burst(burst));
        }
        match batch.steps.last_mut() {
            Some(Step::Burst(burst)) => burst.push(data, arrival),
            _ => false,
        }
    }

    /// An empty burst for a worker.
    pub fn burst(&mut self, worker: usize) -> Burst {
        let free = self.free.get_mut(worker).and_then(Vec::pop);
        free.unwrap_or_else(|| {
            self.made += 1;
            Burst::new(self.capacity, self.ports, self.layout).of_worker(worker as u32)
        })
    }

    /// Takes a window back, nothing of which is lent any more.
    pub fn reclaim(&mut self, mut window: Box<Window>) {
        window.packets = 0;
        window.rows.clear();
        window.beats = false;
        for (batch, free) in window.batches.iter_mut().zip(&mut self.free) {
            for step in batch.steps.drain(..) {
                if let Step::Burst(mut burst) = step {
                    burst.clear();
                    free.push(burst);
                }
            }
            batch.records.clear();
            batch.parts.clear();
        }
        self.windows.push(window);
    }

    /// Bytes of the bursts there are.
    pub fn bytes(&self) -> u64 {
        self.made * Burst::bytes(self.capacity)
    }
}
