use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use millrace_steer::{Rss, Steering, nic};

use super::*;
use crate::packet::Layout;
use crate::port::buffers::Buffers;

/// A queue of frames that somebody put there; what is sent is noted.
pub(super) struct Fed {
    pub(super) buffers: Buffers,
    pub(super) waiting: VecDeque<Vec<u8>>,
    pub(super) lent: Arc<Mutex<usize>>,
    pub(super) closed: bool,
    /// it says how many buffers it has
    pub(super) says: bool,
}

impl Fed {
    /// A queue of this many buffers with these frames.
    pub(super) fn queue(
        buffers: usize,
        waiting: impl Into<VecDeque<Vec<u8>>>,
        lent: &Arc<Mutex<usize>>,
        says: bool,
    ) -> Box<dyn Queue> {
        Box::new(Self {
            buffers: Buffers::new(buffers, 0, Layout::Pooled),
            waiting: waiting.into(),
            lent: lent.clone(),
            closed: false,
            says,
        })
    }
}

// SAFETY: frames come from `Buffers`, which leaves a lent buffer alone until it is released.
unsafe impl Queue for Fed {
    fn lends(&self) -> Option<usize> {
        self.says
            .then(|| self.buffers.free() + *self.lent.lock().unwrap())
    }

    fn receive(&mut self, into: &mut Vec<Frame>, most: usize, _: u64) -> Result<usize, PortError> {
        let start = into.len();
        while into.len() - start < most && self.buffers.free() > 0 && !self.closed {
            let Some(bytes) = self.waiting.pop_front() else {
                break;
            };
            into.extend(self.buffers.copy(&bytes));
        }
        *self.lent.lock().unwrap() += into.len() - start;
        Ok(into.len() - start)
    }

    fn transmit(&mut self, packets: &mut [Departure]) -> Result<usize, PortError> {
        Ok(packets.len())
    }

    fn release(&mut self, frames: &[Frame]) {
        *self.lent.lock().unwrap() -= frames.len();
        self.buffers.release(frames);
    }

    fn close(&mut self) {
        self.closed = true;
    }

    fn ended(&self) -> bool {
        self.waiting.is_empty()
    }
}

/// An IPv4 packet without ports from this address; `number` is its last byte.
pub(super) fn frame(from: u8, number: u8) -> Vec<u8> {
    let mut frame = vec![0_u8; 35];
    frame[12] = 8;
    frame[14] = 0x45;
    frame[26..30].copy_from_slice(&[10, 0, from, 7]);
    frame[30..34].copy_from_slice(&[192, 0, 2, 1]);
    frame[34] = number;
    frame
}

pub(super) fn steering(queues: u32) -> Steering {
    Steering {
        nic: Rss::new(&nic::named("generic").unwrap(), queues),
        software: std::collections::BTreeMap::new(),
        inside: false,
        echoes: false,
        odd: None,
    }
}

pub(super) fn bytes(frame: &Frame) -> Vec<u8> {
    let length = frame.end.addr() - frame.data.addr();
    // SAFETY: a queue lent it and it has not been given back.
    unsafe { std::slice::from_raw_parts(frame.data, length) }.to_vec()
}

pub(super) struct Port {
    pub(super) queues: Vec<Box<dyn Queue>>,
    pub(super) lent: Vec<Arc<Mutex<usize>>>,
}

/// A port of this many workers; worker `i` receives what is in `waiting[i]`.
pub(super) fn port_by(waiting: Vec<Vec<Vec<u8>>>, by: By) -> Port {
    let lent: Vec<_> = waiting.iter().map(|_| Arc::new(Mutex::new(0))).collect();
    let queues = waiting.into_iter().zip(&lent);
    let queues = queues.map(|(waiting, lent)| Fed::queue(64, waiting, lent, false));
    Port {
        queues: hand_over("x:y", queues.collect(), by, None).unwrap(),
        lent,
    }
}

fn port(waiting: Vec<Vec<Vec<u8>>>, told: bool) -> Port {
    let owners = vec![steering(waiting.len() as u32).owners()];
    port_by(waiting, By::Owner { owners, told })
}

/// A worker that is slow loses none of the packets of a queue that says how many buffers it has, and more than 1,024 of one that does not.
#[test]
fn all_buffers_of_a_queue_may_be_on_their_way_to_one_worker() {
    const BUFFERS: usize = 3000;
    let steering = steering(2);
    let own = (0..=255).find(|from| steering.queue(&frame(*from, 0)) == 1);
    for says in [true, false] {
        let lent = Arc::new(Mutex::new(0));
        let queue = |waiting: usize, lent: &Arc<Mutex<usize>>| {
            Fed::queue(BUFFERS, vec![frame(own.unwrap(), 0); waiting], lent, says)
        };
        let queues = vec![queue(BUFFERS, &lent), queue(0, &Arc::default())];
        let owners = vec![steering.owners()];
        let by = By::Owner {
            owners,
            told: false,
        };
        let mut queues = hand_over("x:y", queues, by, None).unwrap();
        let mut frames = Vec::new();
        for _ in 0..BUFFERS {
            assert_eq!(queues[0].receive(&mut frames, 32, u64::MAX).unwrap(), 0);
        }
        let mut came = 0;
        for _ in 0..BUFFERS {
            frames.clear();
            came += queues[1].receive(&mut frames, 32, u64::MAX).unwrap();
            queues[1].release(&frames);
        }
        let missed = queues[1].counts().missed as usize;
        assert_eq!(came + missed, BUFFERS);
        assert_eq!(missed == 0, says, "{missed} of {BUFFERS}");
    }
}

/// Nothing was lost, and every buffer is back.
pub(super) fn all_is_home(port: &mut Port) {
    for queue in &mut port.queues {
        // What came home at the end is taken back with the next turn.
        queue.receive(&mut Vec::new(), 0, u64::MAX).unwrap();
        assert_eq!(queue.counts(), QueueCounts::default());
    }
    assert!(port.lent.iter().all(|lent| *lent.lock().unwrap() == 0));
}

/// Turns all workers until all have ended; what each received.
pub(super) fn run(port: &mut Port) -> Vec<Vec<Vec<u8>>> {
    let mut got = vec![Vec::new(); port.queues.len()];
    let mut frames = Vec::new();
    for _ in 0..10_000 {
        for (queue, got) in port.queues.iter_mut().zip(&mut got) {
            frames.clear();
            queue.receive(&mut frames, 16, u64::MAX).unwrap();
            got.extend(frames.iter().map(bytes));
            queue.release(&frames);
        }
        if port.queues.iter().all(|q| q.ended()) {
            break;
        }
    }
    got
}

#[test]
fn every_packet_comes_to_its_owner_in_order_and_every_buffer_home() {
    let packets = |start: u8| {
        let all = (0..=255_u8).flat_map(|n| (0..8).map(move |f| frame(start + f * 29, n)));
        all.collect::<Vec<_>>()
    };
    let mut port = port(vec![packets(0), packets(1), packets(2), Vec::new()], false);
    let got = run(&mut port);
    assert_eq!(got.iter().map(Vec::len).sum::<usize>(), 3 * 8 * 256);
    let rss = steering(4).nic;
    for (worker, got) in got.iter().enumerate() {
        let mut last = std::collections::HashMap::new();
        for packet in got {
            assert_eq!(rss.queue(packet) as usize, worker);
            let before = last.insert(packet[28], packet[34]);
            assert!(
                before.is_none_or(|before| before < packet[34]),
                "{packet:?}"
            );
        }
    }
    assert!(got.iter().all(|g| !g.is_empty()));
    all_is_home(&mut port);
}

#[test]
fn a_device_that_was_told_is_believed() {
    let all: Vec<_> = (0..200).map(|n| frame(n, n)).collect();
    let mut port = port(vec![all.clone(), Vec::new()], true);
    let got = run(&mut port);
    assert_eq!(got[0], all);
    assert!(got[1].is_empty());
}

#[test]
fn what_finds_its_owners_ring_full_is_lost_and_counted() {
    let rss = steering(2).nic;
    let other = (0..=255)
        .find(|from| rss.queue(&frame(*from, 0)) == 1)
        .unwrap();
    let mut port = port(vec![vec![frame(other, 9); 5000], Vec::new()], false);
    let mut frames = Vec::new();
    let (first, second) = port.queues.split_at_mut(1);
    // The owner takes nothing: its ring fills, and then the lender's buffers come straight home.
    for _ in 0..2000 {
        assert_eq!(first[0].receive(&mut frames, 16, u64::MAX).unwrap(), 0);
    }
    // 64 buffers are with the owner, so nothing more was received and nothing is lost.
    assert_eq!(*port.lent[0].lock().unwrap(), 64);
    assert_eq!(second[0].counts().missed, 0);
    second[0].finish().unwrap();
    assert_eq!(second[0].counts().missed, 64);
    first[0].receive(&mut frames, 0, u64::MAX).unwrap();
    assert_eq!(*port.lent[0].lock().unwrap(), 0);
}

#[test]
fn a_worker_that_waits_is_woken() {
    let rss = steering(2).nic;
    let other = (0..=255)
        .find(|from| rss.queue(&frame(*from, 0)) == 1)
        .unwrap();
    let bell = Bell::new(None).unwrap();
    let poll = |fd: i32, ms: i32| {
        let mut polled = libc::pollfd {
            fd,
            events: libc::POLLIN,
            revents: 0,
        };
        // SAFETY: one initialised entry that outlives the call.
        unsafe { libc::poll(&raw mut polled, 1, ms) }
    };
    bell.ring();
    let fd = bell.asleep();
    assert_eq!(poll(fd, 0), 0, "rung while awake");
    bell.ring();
    assert_eq!(poll(fd, 1000), 1);
    bell.awake();
    let fd = bell.asleep();
    assert_eq!(poll(fd, 0), 0, "silenced");
    let mut port = port(vec![vec![frame(other, 1)], vec![frame(other, 2)]], false);
    assert!(port.queues[1].descriptor().is_none(), "its queue has none");
    port.queues[0]
        .receive(&mut Vec::new(), 16, u64::MAX)
        .unwrap();
    let mut frames = Vec::new();
    port.queues[1].receive(&mut frames, 16, u64::MAX).unwrap();
    assert_eq!(frames.len(), 2);
}
