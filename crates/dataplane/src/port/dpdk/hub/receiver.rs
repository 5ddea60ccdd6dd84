//! Receiving for all workers: whoever holds the receiver does it.

use std::collections::VecDeque;
use std::mem::ManuallyDrop;
use std::sync::atomic::Ordering;

use rtrb::{Producer, PushError};

use super::Hub;
use crate::port::dpdk::raw;

/// A received packet on its way to its worker. Its buffer is freed when it does not arrive.
pub struct Waiting(pub(super) raw::Frame);

// SAFETY: the address of a buffer that nobody else has; pools are made for several threads.
unsafe impl Send for Waiting {}

impl Waiting {
    /// The packet, whose buffer is the caller's now.
    pub fn arrive(self) -> raw::Frame {
        ManuallyDrop::new(self).0
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        // SAFETY: it was received and is lent to nobody.
        unsafe { raw::mr_free(&raw mut self.0.mbuf, 1) };
    }
}

/// The end that receives: whoever holds it.
pub struct Receiver {
    pub(super) to: Vec<Producer<Waiting>>,
    /// whether a worker still takes packets
    pub(super) open: Vec<bool>,
    pub(super) received: Vec<raw::Frame>,
    /// of a device of files: packets for whose workers there was no room
    pub(super) held: VecDeque<(usize, Waiting)>,
    pub(super) queues: u16,
    pub(super) next: u16,
    /// times that nothing came, one after the other
    pub(super) quiet: u16,
    /// packets that may still be received, once all workers close
    pub(super) left: Option<usize>,
}

// SAFETY: `received` is scratch, whose addresses mean nothing between calls; the rest may be sent.
unsafe impl Send for Receiver {}

impl Receiver {
    /// Receives a burst and hands it out; how many packets came.
    pub fn poll(&mut self, hub: &Hub, missed: &mut u64, unfit: &mut u64) -> usize {
        let files = hub.device.ends();
        while let Some((to, waiting)) = self.held.pop_front() {
            if let Err(waiting) = self.push(hub, to, waiting, missed) {
                self.held.push_front((to, waiting));
                return 0;
            }
        }
        let most = self.received.len().min(self.left.unwrap_or(usize::MAX));
        if most == 0 || hub.ended.load(Ordering::Relaxed) {
            return 0;
        }
        let lost = if files { hub.device.stats().missed } else { 0 };
        let (stamps, damaged) = (hub.device.stamps(), *unfit);
        // SAFETY: `received` has room for `most` frames; whoever holds the receiver is alone with the queue.
        let count = unsafe {
            raw::mr_receive(
                hub.device.port(),
                self.next,
                hub.device.pool(),
                &raw const stamps,
                self.received.as_mut_ptr(),
                most as u32,
                unfit,
            )
        } as usize;
        self.next = (self.next + 1) % self.queues;
        self.quiet = if count == 0 {
            self.quiet.saturating_add(1)
        } else {
            0
        };
        if let Some(left) = &mut self.left {
            *left = left.saturating_sub(count);
        }
        // No buffer was free when a file's reader lost something: it goes on when some are.
        if files && count == 0 && *unfit == damaged && hub.device.stats().missed == lost {
            hub.ended.store(true, Ordering::Release);
        }
        for index in 0..count {
            let Some(frame) = self.received.get(index).copied() else {
                break;
            };
            let length = frame.end.addr() - frame.data.addr();
            // SAFETY: it was just received and is lent to nobody.
            let bytes = unsafe { std::slice::from_raw_parts(frame.data, length) };
            let to = (hub.lookup.queue(bytes) as usize).min(self.to.len().saturating_sub(1));
            let waiting = Waiting(frame);
            if !self.held.is_empty() {
                self.held.push_back((to, waiting));
            } else if let Err(waiting) = self.push(hub, to, waiting, missed) {
                self.held.push_back((to, waiting));
            }
        }
        count
    }

    /// Puts a packet into a worker's ring, or counts that it is lost; gives it back where it must wait.
    fn push(
        &mut self,
        hub: &Hub,
        to: usize,
        waiting: Waiting,
        missed: &mut u64,
    ) -> Result<(), Waiting> {
        let files = hub.device.ends();
        let stamp = waiting.0.stamp;
        if !self.open.get(to).is_some_and(|open| *open) {
            // A file's packets that nobody takes are as good as unread.
            *missed += u64::from(!files);
            return Ok(());
        }
        let Some(producer) = self.to.get_mut(to) else {
            return Ok(());
        };
        match producer.push(waiting) {
            Ok(()) if files => hub.bound.store(stamp, Ordering::Release),
            Ok(()) => (),
            Err(PushError::Full(waiting)) if files => return Err(waiting),
            Err(PushError::Full(_)) => {
                if let Some(missed) = hub.missed.get(to) {
                    missed.fetch_add(1, Ordering::Relaxed);
                }
            }
        }
        Ok(())
    }
}
