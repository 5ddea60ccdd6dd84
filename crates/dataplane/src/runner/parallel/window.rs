//! What passes between the thread that reads and writes and the workers.

use crate::module::Record;
use crate::packet::{Arrival, Burst, Layout};
use crate::runner::tally::Leaves;

/// One thing for a worker to do.
pub enum Step {
    /// runs the function over a burst; where its packets go is written beside it
    Burst(Burst, Vec<Leaves>),
    /// fires a timer
    Fire {
        /// its index
        timer: usize,
        /// its moment, ns
        moment: u64,
    },
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

/// Bursts that are used again.
pub struct Pool {
    /// a worker each
    free: Vec<Vec<Burst>>,
    capacity: usize,
    ports: u32,
    layout: Layout,
    made: u64,
}

impl Pool {
    /// For so many workers, bursts of this many packets of a function of so many ports.
    pub fn new(workers: usize, capacity: usize, ports: u32, layout: Layout) -> Self {
        Self {
            free: (0..workers).map(|_| Vec::new()).collect(),
            capacity,
            ports,
            layout,
            made: 0,
        }
    }

    /// Puts a packet behind what a worker has to do; false when the function does not take it.
    pub fn add(
        &mut self,
        batch: &mut Batch,
        worker: usize,
        frame: &[u8],
        arrival: Arrival,
    ) -> bool {
        if !matches!(batch.steps.last(), Some(Step::Burst(burst, _)) if !burst.is_full()) {
            let free = self.free.get_mut(worker).and_then(Vec::pop);
            let burst = free.unwrap_or_else(|| {
                self.made += 1;
                let burst = Burst::new(self.capacity, self.ports, self.layout);
                burst.of_worker(worker as u32)
            });
            batch.steps.push(Step::Burst(burst, Vec::new()));
        }
        match batch.steps.last_mut() {
            Some(Step::Burst(burst, _)) => burst.push(frame, arrival),
            _ => false,
        }
    }

    /// Takes the bursts of a batch back.
    pub fn reclaim(&mut self, worker: usize, steps: Vec<Step>) {
        for step in steps {
            if let (Step::Burst(mut burst, _), Some(free)) = (step, self.free.get_mut(worker)) {
                burst.clear();
                free.push(burst);
            }
        }
    }

    /// Bytes of the bursts there are.
    pub fn bytes(&self) -> u64 {
        self.made * Burst::bytes(self.capacity)
    }
}
