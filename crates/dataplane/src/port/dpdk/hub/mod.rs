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

mod receiver;
mod sender;
mod share;

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize};
use std::sync::{Arc, Mutex};

use millrace_steer::Lookup;
use rtrb::{Consumer, RingBuffer};

pub use share::Share;

use super::device::Device;
use super::queue::NOTHING;
use receiver::Receiver;
use sender::{Ready, Sender};

/// The most packets received or sent in one call of a driver.
const MOST: usize = 64;

/// How many of what a hub has.
pub struct Lines {
    /// queues of the device in each direction
    pub queues: u16,
    /// workers
    pub workers: u16,
    /// packets that a ring between workers holds
    pub between: usize,
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
