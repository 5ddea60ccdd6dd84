//! The indirection table of a device, which workers may change while packets come.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use crate::classes::Classes;
use crate::classes::table::Indirection;

/// A table by the low bits of a packet's hash.
#[derive(Debug)]
pub struct Table {
    /// by class; as many as a power of two
    queues: Box<[AtomicU32]>,
    changes: AtomicU64,
    /// the change up to which the device has seen the table, with nothing under way by an earlier one
    applied: AtomicU64,
}

impl Table {
    /// As workers have the classes now; none where these are no part of a hash.
    pub fn of(classes: &Classes, queues: u32) -> Option<Self> {
        let workers = classes.table();
        if !workers.len().is_power_of_two() || classes.buckets().is_none() {
            return None;
        }
        let queue = |(class, worker): (usize, usize)| match worker < queues as usize {
            true => worker as u32,
            // Of another machine: whoever gets it sends it on.
            false => class as u32 % queues.max(1),
        };
        let all = workers.into_iter().enumerate().map(queue);
        Some(Self {
            queues: all.map(AtomicU32::new).collect(),
            changes: AtomicU64::new(0),
            applied: AtomicU64::new(0),
        })
    }

    /// The queue of a packet with this hash.
    #[inline]
    pub fn of_hash(&self, hash: u32) -> u32 {
        let at = hash as usize & (self.queues.len() - 1);
        let queue = self.queues.get(at);
        queue.map_or(0, |queue| queue.load(Ordering::Relaxed))
    }

    /// The device has delivered all that it has sorted so far, and sorts by what the table is now.
    #[inline]
    pub fn look(&self) {
        let changes = self.changes.load(Ordering::Acquire);
        if self.applied.load(Ordering::Relaxed) != changes {
            self.applied.store(changes, Ordering::Release);
        }
    }
}

impl Indirection for Table {
    fn queue(&self, class: u16) -> usize {
        self.of_hash(u32::from(class)) as usize
    }

    fn point(&self, class: u16, queue: usize) -> u64 {
        if let Some(place) = self.queues.get(usize::from(class)) {
            place.store(queue as u32, Ordering::Relaxed);
        }
        self.changes.fetch_add(1, Ordering::Release) + 1
    }

    fn applies(&self, change: u64) -> bool {
        self.applied.load(Ordering::Acquire) >= change
    }
}
