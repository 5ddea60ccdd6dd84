//! The device as all its threads and the drivers share it.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use super::settings::Rate;

/// How a rate is stored: packets a second, infinity for as fast as they are taken, 0 for a pause.
const TAKEN: f64 = f64::INFINITY;

/// What controls a device, and what it says of itself.
#[derive(Debug)]
pub struct Device {
    rate: AtomicU64,
    /// counts changes of the rate, so that threads begin their schedules anew
    epoch: AtomicU32,
    /// for each queue, whether its worker takes nothing more
    closed: Box<[AtomicBool]>,
    stop: AtomicBool,
    /// for each queue, whether nothing more will come
    finished: Box<[AtomicBool]>,
    /// ticks that threads of the device did not run in time, together
    stalled: AtomicU64,
}

impl Device {
    /// A device of this many queues.
    #[must_use]
    pub fn new(queues: u32, rate: Rate) -> Self {
        Self {
            rate: AtomicU64::new(bits(rate)),
            epoch: AtomicU32::new(0),
            closed: flags(queues),
            stop: AtomicBool::new(false),
            finished: flags(queues),
            stalled: AtomicU64::new(0),
        }
    }

    /// Sets how fast packets come from now on; none, not at all.
    pub fn set_rate(&self, rate: Option<Rate>) {
        let value = rate.map_or(0, bits);
        self.rate.store(value, Ordering::Relaxed);
        self.epoch.fetch_add(1, Ordering::Release);
    }

    /// How many times the rate was changed.
    #[inline]
    #[must_use]
    pub fn epoch(&self) -> u32 {
        self.epoch.load(Ordering::Acquire)
    }

    /// How fast packets come; none, not at all.
    #[must_use]
    pub fn rate(&self) -> Option<Rate> {
        match f64::from_bits(self.rate.load(Ordering::Relaxed)) {
            rate if rate >= TAKEN => Some(Rate::Taken),
            rate if rate > 0.0 => Some(Rate::PerSecond(rate)),
            _ => None,
        }
    }

    /// The thread of this queue receives nothing more; what is in the rings stays, and what is to be sent is. Other threads go
    /// on: a worker may have come to the end of its queue before others do.
    pub fn close(&self, queue: usize) {
        if let Some(closed) = self.closed.get(queue) {
            closed.store(true, Ordering::Release);
        }
    }

    /// Whether this queue was closed.
    #[inline]
    #[must_use]
    pub fn closed(&self, queue: usize) -> bool {
        self.closed
            .get(queue)
            .is_some_and(|c| c.load(Ordering::Acquire))
    }

    /// Asks the threads to end.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Release);
    }

    /// Whether they were asked to.
    #[inline]
    #[must_use]
    pub fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Whether nothing more will be put into this queue.
    #[must_use]
    pub fn finished(&self, queue: usize) -> bool {
        self.finished
            .get(queue)
            .is_none_or(|f| f.load(Ordering::Acquire))
    }

    /// Whether nothing more will be put into any queue.
    #[must_use]
    pub fn over(&self) -> bool {
        self.finished.iter().all(|f| f.load(Ordering::Acquire))
    }

    /// Says that nothing more will be put into this queue.
    pub fn finish(&self, queue: usize) {
        if let Some(finished) = self.finished.get(queue) {
            finished.store(true, Ordering::Release);
        }
    }

    /// Counts ticks in which a thread should have sent packets and did not run.
    pub fn stall(&self, ticks: u64) {
        self.stalled.fetch_add(ticks, Ordering::Relaxed);
    }

    /// Ticks in which threads of the device did not run in time.
    #[must_use]
    pub fn stalled(&self) -> u64 {
        self.stalled.load(Ordering::Relaxed)
    }
}

fn flags(queues: u32) -> Box<[AtomicBool]> {
    (0..queues).map(|_| AtomicBool::new(false)).collect()
}

fn bits(rate: Rate) -> u64 {
    match rate {
        Rate::Taken => TAKEN.to_bits(),
        Rate::PerSecond(rate) => rate.to_bits(),
    }
}
