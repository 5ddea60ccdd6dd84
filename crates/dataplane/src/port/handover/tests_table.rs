//! Classes that move where the device's table moves with them.
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize};
use std::sync::{Arc, Mutex};

use super::tests::{bytes, frame, steering};
use super::*;
use crate::classes::table::Indirection;
use crate::classes::{Classes, MoveError};
use crate::packet::Layout;
use crate::port::buffers::Buffers;

const CLASSES: u16 = 8;
const WORKERS: usize = 3;

/// A device: packets are sorted a batch at a time, and seen by workers when the batch is full.
struct Device {
    table: Vec<AtomicUsize>,
    changes: AtomicU64,
    applied: AtomicU64,
    /// a change applies at once, though packets that were sorted before are still under way
    hasty: bool,
    queues: Vec<Mutex<VecDeque<Vec<u8>>>>,
    over: AtomicBool,
}

impl Indirection for Device {
    fn queue(&self, class: u16) -> usize {
        self.table[usize::from(class)].load(Ordering::Relaxed)
    }

    fn point(&self, class: u16, queue: usize) -> u64 {
        self.table[usize::from(class)].store(queue, Ordering::Relaxed);
        self.changes.fetch_add(1, Ordering::Release) + 1
    }

    fn applies(&self, change: u64) -> bool {
        self.hasty || self.applied.load(Ordering::Acquire) >= change
    }
}

struct Side {
    device: Arc<Device>,
    worker: usize,
    buffers: Buffers,
    closed: bool,
}

// SAFETY: frames come from `Buffers`, which leaves a lent buffer alone until it is released.
unsafe impl Queue for Side {
    fn receive(&mut self, into: &mut Vec<Frame>, most: usize, _: u64) -> Result<usize, PortError> {
        let mut waiting = self.device.queues[self.worker].lock().unwrap();
        let start = into.len();
        while into.len() - start < most {
            let Some(bytes) = waiting.pop_front() else {
                break;
            };
            into.push(self.buffers.copy(&bytes).unwrap());
        }
        Ok(into.len() - start)
    }

    fn transmit(&mut self, packets: &mut [Departure]) -> Result<usize, PortError> {
        Ok(packets.len())
    }

    fn release(&mut self, frames: &[Frame]) {
        self.buffers.release(frames);
    }

    fn close(&mut self) {
        self.closed = true;
    }

    fn ended(&self) -> bool {
        self.device.over.load(Ordering::Acquire)
            && self.device.queues[self.worker].lock().unwrap().is_empty()
    }
}

/// What a run has seen.
#[derive(Default)]
struct Seen {
    /// packets that came behind a later one of their flow, or at a worker that has not their class
    wrong: u64,
    /// moves, and packets that their device brought to another worker than theirs
    moves: usize,
    detours: u64,
    packets: u64,
}

/// Classes, a device whose table leads to their workers, and its queues.
fn port(hasty: bool) -> (Arc<Classes>, Arc<Device>, Vec<Box<dyn Queue>>) {
    let classes = Classes::new(
        vec![steering(u32::from(CLASSES)).owners()],
        CLASSES,
        WORKERS,
    );
    let table = classes.table().into_iter().map(AtomicUsize::new);
    let device = Arc::new(Device {
        table: table.collect(),
        changes: AtomicU64::new(0),
        applied: AtomicU64::new(0),
        hasty,
        queues: (0..WORKERS).map(|_| Mutex::default()).collect(),
        over: AtomicBool::new(false),
    });
    let queues = (0..WORKERS).map(|worker| {
        Box::new(Side {
            device: device.clone(),
            worker,
            buffers: Buffers::new(4096, 0, Layout::Pooled),
            closed: false,
        }) as Box<dyn Queue>
    });
    let by = By::Class {
        classes: classes.clone(),
        port: 0,
    };
    let of_device: Arc<dyn Indirection> = device.clone();
    let queues = hand_over("x:y", queues.collect(), by, Some(&of_device)).unwrap();
    (classes, device, queues)
}

/// Packets of 24 flows come by a device, and classes move all the time.
fn run(rounds: u16, hasty: bool) -> Seen {
    let (classes, device, mut queues) = port(hasty);
    let all: Vec<Vec<u8>> = (0..rounds)
        .flat_map(|n| {
            (0..24).map(move |flow| {
                let mut packet = frame(flow, 0);
                packet.extend(n.to_be_bytes());
                packet
            })
        })
        .collect();
    let moves = AtomicUsize::new(0);
    let mut seen = Seen::default();
    let mut next = [0_u16; 24];
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for turn in 0_usize.. {
                let (class, to) = (turn * 3 % usize::from(CLASSES), turn * 5 % WORKERS);
                match classes.assign(class, to) {
                    Ok(moved) => {
                        moves.fetch_add(usize::from(moved.from != to), Ordering::Relaxed);
                        assert_eq!(device.queue(class as u16), to);
                    }
                    Err(error) => return assert_eq!(error, MoveError::Ends),
                }
            }
        });
        let mut source = all.into_iter();
        let (mut batch, mut random) = (Vec::new(), 1_u64);
        let mut frames = Vec::new();
        while !queues.iter().all(|q| q.ended()) {
            random = random
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            // Now and then the device has sorted half a batch when a worker looks.
            if batch.is_empty() {
                device
                    .applied
                    .store(device.changes.load(Ordering::Acquire), Ordering::Release);
            }
            for _ in 0..random >> 60 {
                match source.next() {
                    Some(packet) => {
                        let queue = device.queue(classes.of(0, &packet));
                        batch.push((queue, packet));
                    }
                    None => device.over.store(batch.is_empty(), Ordering::Release),
                }
            }
            if random >> 33 & 3 == 0 {
                for (queue, packet) in batch.drain(..) {
                    device.queues[queue].lock().unwrap().push_back(packet);
                }
            }
            let worker = (random >> 40) as usize % WORKERS;
            let (queue, from) = (&mut queues[worker], &device.queues[worker]);
            let brought = from.lock().unwrap().len();
            frames.clear();
            queue.receive(&mut frames, 16, u64::MAX).unwrap();
            seen.detours += u64::from(brought == 0) * frames.len() as u64;
            for frame in &frames {
                let bytes = bytes(frame);
                let flow = usize::from(bytes[28]);
                let number = u16::from_be_bytes([bytes[35], bytes[36]]);
                let right = number == next[flow] && classes.worker(frame.class) == worker;
                seen.wrong += u64::from(!right);
                seen.packets += 1;
                next[flow] = next[flow].max(number + 1);
            }
            queue.release(&frames);
            std::thread::yield_now();
        }
        classes.close();
    });
    assert!(queues.iter().all(|q| q.counts() == QueueCounts::default()));
    seen.moves = moves.load(Ordering::Relaxed);
    seen
}

#[test]
fn packets_stay_in_order_where_the_table_of_the_device_moves_too() {
    let rounds = 4000;
    let seen = run(rounds, false);
    assert_eq!((seen.wrong, seen.packets), (0, u64::from(rounds) * 24));
    assert!(seen.moves > 20, "{}", seen.moves);
    // After a move packets come without a detour.
    assert!(seen.detours * 4 < seen.packets, "{} detours", seen.detours);
}

/// The step that waits for the device is what keeps them in order.
#[test]
fn a_device_that_says_too_early_that_its_table_applies_lets_packets_overtake() {
    assert!((0..20).any(|_| run(2000, true).wrong > 0));
}

/// Nothing of the state is on its way then: who wants it does not wait for packets.
#[test]
fn a_class_that_only_waits_for_the_device_keeps_nobody_from_the_state() {
    let (classes, device, mut queues) = port(false);
    let moving = std::thread::spawn({
        let classes = classes.clone();
        move || classes.assign(0, 1)
    });
    let mut look = || {
        for queue in &mut queues {
            queue.receive(&mut Vec::new(), 16, u64::MAX).unwrap();
        }
        std::thread::yield_now();
    };
    while classes.worker(0) != 1 {
        look();
    }
    // The device has not looked at its table.
    (0..10).for_each(|_| look());
    assert!(!moving.is_finished());
    assert!(classes.recall());
    drop(classes.still());
    device
        .applied
        .store(device.changes.load(Ordering::Acquire), Ordering::Release);
    while !moving.is_finished() {
        look();
    }
    assert!(moving.join().unwrap().is_ok_and(|moved| moved.to == 1));
}
