//! In what order workers do their packets.
//!
//! Sharded workers share nothing, so that every order which keeps each worker's own gives the same; what
//! differs between orders is a defect of the plan, and a seed that shows it can be used again. Sides that
//! share state will add an order of commits here, recorded from a run.

use std::collections::VecDeque;

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// An order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Schedule {
    /// as the packets came in
    Ingress,
    /// workers fall behind each other by chance, each doing bursts of its own
    Seeded(u64),
    /// a thread for each worker
    Threads,
}

/// The longest burst that a worker does before another one may.
const BURST: u32 = 32;
/// How many packets the slowest worker may be behind.
const WINDOW: usize = 1024;

impl Schedule {
    /// How many packets are dealt out before all workers must have done theirs.
    #[must_use]
    pub fn window(self) -> usize {
        match self {
            Self::Ingress => 1,
            Self::Seeded(_) | Self::Threads => WINDOW,
        }
    }

    /// As people write it: `ingress`, `seeded` or `threads`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Ingress => "ingress",
            Self::Seeded(_) => "seeded",
            Self::Threads => "threads",
        }
    }
}

/// The choice of the next worker.
pub struct Chooser {
    random: ChaCha8Rng,
}

impl Chooser {
    /// For a schedule.
    #[must_use]
    pub fn new(schedule: Schedule) -> Self {
        let seed = match schedule {
            Schedule::Seeded(seed) => seed,
            Schedule::Ingress | Schedule::Threads => 0,
        };
        Self {
            random: ChaCha8Rng::seed_from_u64(seed),
        }
    }

    /// A worker that has packets waiting, and how many it does now; none when nobody has.
    pub fn next<T>(&mut self, queues: &[VecDeque<T>]) -> Option<(usize, usize)> {
        let waiting: Vec<usize> = (0..queues.len())
            .filter(|w| queues.get(*w).is_some_and(|q| !q.is_empty()))
            .collect();
        let at = match waiting.len() {
            0 => return None,
            n => self.random.random_range(0..n),
        };
        let burst = self.random.random_range(1..=BURST);
        Some((*waiting.get(at)?, burst as usize))
    }
}
