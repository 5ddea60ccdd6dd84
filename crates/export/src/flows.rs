//! Samples joined to flows.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use crate::sample::{Key, Sample};

/// Flows that are open at most; when there are more, all are exported.
pub const MOST: usize = 65_536;
/// When flows are exported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeouts {
    /// one that has been open for so long; it goes on as another record (RFC 5470, section 5.1.1)
    pub active: Duration,
    /// one that has had no sample for so long
    pub idle: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            active: Duration::from_secs(10),
            idle: Duration::from_secs(3),
        }
    }
}

/// Why a flow was exported: `flowEndReason`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// no packet for a while
    Idle = 1,
    /// it is open for long
    Active = 2,
    /// the run has ended
    Forced = 4,
    /// there was no room for another one
    Room = 5,
}

/// What is counted of a flow.
#[derive(Clone, Debug)]
pub struct Flow {
    /// its samples
    pub packets: u64,
    /// their bytes from the header of IP on
    pub octets: u64,
    /// their bytes as frames
    pub frames: u64,
    /// the first one, ns since the epoch
    pub first: u64,
    /// the last one
    pub last: u64,
    /// all flags of TCP
    pub flags: u8,
    opened: Instant,
    touched: Instant,
}

/// Flows that are open.
#[derive(Default)]
pub struct Flows {
    open: HashMap<Key, Flow>,
    timeouts: Timeouts,
}

impl Flows {
    /// None yet.
    #[must_use]
    pub fn new(timeouts: Timeouts) -> Self {
        Self {
            open: HashMap::new(),
            timeouts,
        }
    }

    /// Adds a sample; `each` gets what has to make room.
    pub fn add(&mut self, sample: Sample, now: Instant, each: &mut dyn FnMut(&Key, &Flow, End)) {
        if self.open.len() >= MOST && !self.open.contains_key(&sample.key) {
            self.all(End::Room, each);
        }
        let flow = self.open.entry(sample.key).or_insert_with(|| Flow {
            packets: 0,
            octets: 0,
            frames: 0,
            first: sample.time,
            last: sample.time,
            flags: 0,
            opened: now,
            touched: now,
        });
        flow.packets += 1;
        flow.octets += sample.octets;
        flow.frames += sample.frame;
        flow.first = flow.first.min(sample.time);
        flow.last = flow.last.max(sample.time);
        flow.flags |= sample.flags;
        flow.touched = now;
    }

    /// Closes those that are due.
    pub fn due(&mut self, now: Instant, each: &mut dyn FnMut(&Key, &Flow, End)) {
        self.open.retain(|key, flow| {
            let end = if now.duration_since(flow.touched) >= self.timeouts.idle {
                End::Idle
            } else if now.duration_since(flow.opened) >= self.timeouts.active {
                End::Active
            } else {
                return true;
            };
            each(key, flow, end);
            false
        });
    }

    /// Closes all.
    pub fn all(&mut self, end: End, each: &mut dyn FnMut(&Key, &Flow, End)) {
        for (key, flow) in self.open.drain() {
            each(&key, &flow, end);
        }
    }
}
