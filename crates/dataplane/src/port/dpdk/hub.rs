//! Workers that share the queues of a device: packets are hashed here (RSS in software) and handed to the
//! worker that owns them, and what workers send is collected.
//!
//! A device with fewer queues than workers is polled by whichever worker has nothing to do: it takes the
//! receiving end by [`Mutex::try_lock`], receives a burst, hashes each packet and puts it into the ring of
//! its worker, its own packets too. One worker receives at a time, so each ring has one producer and packets
//! of a flow stay in order; nobody waits for the lock, since who finds it taken has nothing to receive. Each
//! worker's packets leave through a ring of its own, which whoever holds the sending end empties into the
//! device.
//!
//! As on a NIC, a packet whose ring is full is lost and counted, by the worker that it was for; only a device
//! that reads files is held up instead. Packets behind a worker that has ended are counted by the worker
//! that received them.

use std::collections::VecDeque;
use std::ffi::c_void;
use std::mem::{ManuallyDrop, forget};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use millrace_steer::Lookup;
use rtrb::{Consumer, Producer, PushError, RingBuffer};

use super::device::Device;
use super::queue::NOTHING;
use super::raw;

/// The most packets received or sent in one call of a driver.
const MOST: usize = 64;
/// How long a worker that ends waits for the others, which may still receive packets of its own.
const TOGETHER: Duration = Duration::from_millis(20);

/// How many of what a hub has.
pub struct Lines {
    /// queues of the device in each direction
    pub queues: u16,
    /// workers
    pub workers: u16,
    /// packets that a ring between workers holds
    pub between: usize,
}

/// A received packet on its way to its worker. Its buffer is freed when it does not arrive.
struct Waiting(raw::Frame);

// SAFETY: the address of a buffer that nobody else has; pools are made for several threads.
unsafe impl Send for Waiting {}

impl Waiting {
    fn arrive(self) -> raw::Frame {
        ManuallyDrop::new(self).0
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        // SAFETY: it was received and is lent to nobody.
        unsafe { raw::mr_free(&raw mut self.0.mbuf, 1) };
    }
}

/// A buffer on its way to the device. It is freed when it does not arrive.
struct Ready(*mut c_void);

// SAFETY: as for `Waiting`.
unsafe impl Send for Ready {}

impl Drop for Ready {
    fn drop(&mut self) {
        // SAFETY: the device did not take it, and its worker has given it away.
        unsafe { raw::mr_free(&raw mut self.0, 1) };
    }
}

/// What the workers of a device share.
pub struct Hub {
    receiver: Mutex<Receiver>,
    /// one for each queue of the device; worker `i` sends by the one with number `i mod queues`
    senders: Vec<Mutex<Sender>>,
    lookup: Lookup,
    /// packets that found the ring of a worker full
    missed: Vec<AtomicU64>,
    /// workers that have stopped receiving
    closing: AtomicUsize,
    /// all workers have, and the device is empty
    drained: AtomicBool,
    /// a device of files is at its end
    ended: AtomicBool,
    /// of a device that keeps time: no packet that is still to come is stamped earlier
    bound: AtomicU64,
    // Last, so that buffers are given back before the device may go.
    device: Arc<Device>,
}

/// The end that receives: whoever holds it.
struct Receiver {
    to: Vec<Producer<Waiting>>,
    /// whether a worker still takes packets
    open: Vec<bool>,
    received: Vec<raw::Frame>,
    /// of a device of files: packets for whose workers there was no room
    held: VecDeque<(usize, Waiting)>,
    queues: u16,
    next: u16,
    /// times that nothing came, one after the other
    quiet: u16,
    /// packets that may still be received, once all workers close
    left: Option<usize>,
}

// SAFETY: `received` is scratch, whose addresses mean nothing between calls; the rest may be sent.
unsafe impl Send for Receiver {}

/// The end that sends by one queue: whoever holds it.
struct Sender {
    from: Vec<Consumer<Ready>>,
    queue: u16,
    /// who is first
    next: usize,
}

/// A worker's part of a hub.
pub struct Share {
    worker: usize,
    receive: Consumer<Waiting>,
    send: Producer<Ready>,
    mbufs: Vec<*mut c_void>,
    /// packets for workers that had ended, or that this one left behind
    missed: u64,
    unfit: u64,
    /// packets that were taken and not sent before the end
    failed: u64,
    closed: Option<Instant>,
    /// nothing is put into the ring any more
    shut: bool,
    hub: Arc<Hub>,
}

// SAFETY: `mbufs` is scratch, empty between calls; the rest may be sent.
unsafe impl Send for Share {}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A worker that died while it held it has left counts, not packets, in doubt.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Hub {
    /// The parts of all workers.
    pub fn open(device: Arc<Device>, lookup: Lookup, lines: &Lines) -> Vec<Share> {
        let workers = usize::from(lines.workers);
        let queues = usize::from(lines.queues.max(1));
        let rings = || (0..workers).map(|_| RingBuffer::new(lines.between));
        let (to, receive): (Vec<_>, Vec<_>) = rings().unzip();
        let (send, from): (Vec<_>, Vec<Consumer<Ready>>) =
            (0..workers).map(|_| RingBuffer::new(lines.between)).unzip();
        let mut senders: Vec<_> = (0..queues)
            .map(|queue| Sender {
                from: Vec::new(),
                queue: queue as u16,
                next: 0,
            })
            .collect();
        for (worker, consumer) in from.into_iter().enumerate() {
            if let Some(sender) = senders.get_mut(worker % queues) {
                sender.from.push(consumer);
            }
        }
        let hub = Arc::new(Self {
            receiver: Mutex::new(Receiver {
                to,
                open: vec![true; workers],
                received: vec![NOTHING; MOST],
                held: VecDeque::new(),
                queues: lines.queues.max(1),
                next: 0,
                quiet: 0,
                left: None,
            }),
            senders: senders.into_iter().map(Mutex::new).collect(),
            lookup,
            missed: (0..workers).map(|_| AtomicU64::new(0)).collect(),
            closing: AtomicUsize::new(0),
            drained: AtomicBool::new(false),
            ended: AtomicBool::new(false),
            bound: AtomicU64::new(0),
            device,
        });
        let ends = receive.into_iter().zip(send).enumerate();
        ends.map(|(worker, (receive, send))| Share {
            worker,
            receive,
            send,
            mbufs: Vec::new(),
            missed: 0,
            unfit: 0,
            failed: 0,
            closed: None,
            shut: false,
            hub: hub.clone(),
        })
        .collect()
    }

    fn sender(&self, worker: usize) -> Option<&Mutex<Sender>> {
        self.senders.get(worker.checked_rem(self.senders.len())?)
    }
}

impl Receiver {
    /// Receives a burst and hands it out; how many packets came.
    fn poll(&mut self, hub: &Hub, missed: &mut u64, unfit: &mut u64) -> usize {
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

impl Sender {
    /// Gives what waits to the device, as far as it takes it; how many packets.
    fn pump(&mut self, device: &Device) -> usize {
        let (mut total, workers) = (0, self.from.len());
        for turn in 0..workers {
            let at = (self.next + turn) % workers;
            let Some(consumer) = self.from.get_mut(at) else {
                continue;
            };
            loop {
                let count = consumer.slots().min(MOST);
                let Ok(chunk) = consumer.read_chunk(count) else {
                    break;
                };
                if count == 0 {
                    break;
                }
                let mut mbufs = [std::ptr::null_mut(); MOST];
                let (first, second) = chunk.as_slices();
                let waiting = first.iter().chain(second);
                for (to, ready) in mbufs.iter_mut().zip(waiting) {
                    *to = ready.0;
                }
                // SAFETY: `count` buffers that nobody else has; whoever holds the sender is alone with the
                // queue. Those that the device took are forgotten, the others stay in the ring.
                let sent = unsafe {
                    raw::mr_send(device.port(), self.queue, mbufs.as_mut_ptr(), count as u32)
                } as usize;
                chunk.into_iter().take(sent).for_each(forget);
                total += sent;
                if sent < count {
                    // The device is full: this worker goes on when it is not.
                    self.next = at;
                    return total;
                }
            }
        }
        self.next = (self.next + 1).checked_rem(workers).unwrap_or(0);
        total
    }
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
