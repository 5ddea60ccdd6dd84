//! What one worker does with queues that it shares.

use std::ffi::c_void;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rtrb::{Consumer, Producer};

use super::Hub;
use super::receiver::Waiting;
use super::sender::Ready;
use crate::port::dpdk::raw;

/// How long a worker that ends waits for the others, which may still receive packets of its own.
const TOGETHER: Duration = Duration::from_millis(20);

/// A worker's part of a hub.
pub struct Share {
    pub(super) worker: usize,
    pub(super) receive: Consumer<Waiting>,
    pub(super) send: Producer<Ready>,
    pub(super) mbufs: Vec<*mut c_void>,
    /// packets for workers that had ended, or that this one left behind
    pub(super) missed: u64,
    pub(super) unfit: u64,
    /// packets that were taken and not sent before the end
    pub(super) failed: u64,
    pub(super) closed: Option<Instant>,
    /// nothing is put into the ring any more
    pub(super) shut: bool,
    pub(super) hub: Arc<Hub>,
}

// SAFETY: `mbufs` is scratch, empty between calls; the rest may be sent.
unsafe impl Send for Share {}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A worker that died while it held it has left counts, not packets, in doubt.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Share {
    /// The packets of this worker, as many as there is room for in `to`; how many.
    pub fn take(&mut self, to: &mut [raw::Frame]) -> usize {
        if self.receive.is_empty() {
            self.poll();
        }
        match self.pop(to) {
            0 if self.closed.is_some() => self.last(to),
            count => count,
        }
    }

    fn pop(&mut self, to: &mut [raw::Frame]) -> usize {
        let mut count = 0;
        for place in to {
            let Ok(waiting) = self.receive.pop() else {
                break;
            };
            *place = waiting.arrive();
            count += 1;
        }
        count
    }

    /// Receives for all, unless another does; none then.
    fn poll(&mut self) -> Option<usize> {
        let hub = &*self.hub;
        let mut receiver = hub.receiver.try_lock().ok()?;
        if hub.closing.load(Ordering::Acquire) >= hub.missed.len() {
            let all = usize::from(hub.device.descriptors()) * usize::from(receiver.queues);
            if receiver.left.is_none() {
                receiver.left = Some(all);
                receiver.quiet = 0;
            }
        }
        let count = receiver.poll(hub, &mut self.missed, &mut self.unfit);
        let empty = receiver.quiet >= receiver.queues;
        if receiver.left == Some(0) || (empty && receiver.left.is_some()) {
            hub.drained.store(true, Ordering::Release);
        }
        Some(count)
    }

    /// What still comes after `close`, until all workers have closed and the device is empty.
    fn last(&mut self, to: &mut [raw::Frame]) -> usize {
        loop {
            let count = self.pop(to);
            if count > 0 || self.shut {
                return count;
            }
            let polled = self.poll();
            let late = self.closed.is_some_and(|at| at.elapsed() > TOGETHER);
            if late || self.hub.drained.load(Ordering::Acquire) {
                self.shut();
            } else if polled != Some(0) || self.receive.is_empty() {
                std::thread::yield_now();
            }
        }
    }

    /// From here on nothing is put into this worker's ring.
    fn shut(&mut self) {
        if let Some(open) = locked(&self.hub.receiver).open.get_mut(self.worker) {
            *open = false;
        }
        self.shut = true;
    }

    /// Takes packets to send and says how many, from the front; those that are too long for a buffer are
    /// counted in `refused`.
    pub fn transmit(&mut self, packets: &mut [raw::Packet], refused: &mut u64) -> usize {
        let mut done = 0;
        while let Some(rest) = packets.get_mut(done..).filter(|rest| !rest.is_empty()) {
            let count = rest.len().min(self.send.slots());
            self.mbufs.clear();
            self.mbufs.resize(count, std::ptr::null_mut());
            // SAFETY: as many packets as places, each as `Queue::transmit` promises it.
            let taken = unsafe {
                raw::mr_prepare(
                    self.hub.device.pool(),
                    self.hub.device.sizes(),
                    rest.as_mut_ptr(),
                    count as u32,
                    self.mbufs.as_mut_ptr(),
                    refused,
                )
            } as usize;
            for mbuf in self.mbufs.drain(..).take(taken).filter(|m| !m.is_null()) {
                // There is room: nobody else puts anything into this ring.
                let _ = self.send.push(Ready(mbuf));
            }
            done += taken;
            if taken < count || (count == 0 && self.flush() == 0) {
                break;
            }
        }
        done
    }

    /// Gives what waits to the device, unless another worker does so; how many packets, of any worker.
    pub fn flush(&mut self) -> usize {
        let Some(mutex) = self.hub.sender(self.worker) else {
            return 0;
        };
        match mutex.try_lock() {
            Ok(mut sender) => sender.pump(&self.hub.device),
            Err(_) => 0,
        }
    }

    /// Whether the device has all that this worker gave it.
    pub fn idle(&self) -> bool {
        self.send.slots() == self.send.buffer().capacity()
    }

    /// The device's queue that this worker sends by.
    pub fn queue(&self) -> u16 {
        (self.worker % self.hub.senders.len().max(1)) as u16
    }

    /// The worker has stopped.
    pub fn close(&mut self) {
        if self.closed.is_none() {
            self.closed = Some(Instant::now());
            self.hub.closing.fetch_add(1, Ordering::Release);
        }
    }

    /// Counts what is left behind.
    pub fn finish(&mut self) {
        self.shut();
        let files = self.hub.device.ends();
        while self.receive.pop().is_ok() {
            self.missed += u64::from(!files);
        }
        if let Some(sender) = self.hub.sender(self.worker) {
            let mut sender = locked(sender);
            sender.pump(&self.hub.device);
            let place = self.worker / self.hub.senders.len().max(1);
            if let Some(consumer) = sender.from.get_mut(place) {
                while consumer.pop().is_ok() {
                    self.failed += 1;
                }
            }
        }
    }

    /// Whether a device of files has nothing more for this worker.
    pub fn ended(&self) -> bool {
        // In this order: what was received before the end is in the ring.
        let receiver = || self.hub.receiver.try_lock();
        self.hub.ended.load(Ordering::Acquire)
            && self.receive.is_empty()
            && receiver().is_ok_and(|r| r.held.is_empty())
            && self.receive.is_empty()
    }

    /// Of a device that keeps time: the stamp of the next packet, or one that it is not before.
    pub fn next_stamp(&self) -> u64 {
        // In this order: what was received up to the bound is in the ring.
        let bound = self.hub.bound.load(Ordering::Acquire);
        self.receive.peek().map_or(bound, |waiting| waiting.0.stamp)
    }

    /// Packets that were lost, could not be presented, and were taken and not sent.
    pub fn counts(&self) -> (u64, u64, u64) {
        let own = self.hub.missed.get(self.worker);
        let own = own.map_or(0, |missed| missed.load(Ordering::Relaxed));
        (own + self.missed, self.unfit, self.failed)
    }
}
