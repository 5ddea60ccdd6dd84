//! The rings of one worker: frames that it hands to others, frames that it is handed, and both ways back.

use rtrb::{Consumer, Producer, RingBuffer};

use crate::packet::MAX_BURST;
use crate::port::{Frame, Pool};

/// Frames that may lie between one worker and another, where it is not known how many buffers the queue has that lends them. Of one that is known to have
/// no more than [`MOST`] all may be on their way to one worker, so that none is lost where that worker is slow: the device waits, or loses what it has no buffer
/// for.
const BETWEEN: usize = 1024;
const MOST: usize = 1 << 16;

/// One worker's ends of the rings; its own place in each list is a ring that nobody uses.
pub struct Rings {
    /// frames of this worker's queue, to their owners
    to: Vec<Producer<Frame>>,
    /// the same frames, from owners that are through with them
    home: Vec<Consumer<Frame>>,
    /// frames of other workers' queues, which this worker owns
    from: Vec<Consumer<Frame>>,
    /// the same frames, back to where they came from
    back: Vec<Producer<Frame>>,
    /// frames of others that this worker has now, and whose they are
    held: Vec<Option<(Frame, usize)>>,
    free: Vec<usize>,
    /// packets that each worker was handed so far
    given: Vec<u64>,
    /// packets of each worker that were given out here so far
    came: Vec<u64>,
    /// workers that were handed something since they were last woken
    handed: Vec<bool>,
    /// whose frames are taken first
    next: usize,
}

impl Rings {
    /// The ends of each worker, whose queue lends at most so many frames at a time, where that is known.
    pub fn all(lends: &[Option<usize>]) -> Vec<Self> {
        let count = lends.len();
        let mut all: Vec<Self> = (0..count)
            .map(|_| Self {
                to: Vec::new(),
                home: Vec::new(),
                from: Vec::new(),
                back: Vec::new(),
                held: Vec::new(),
                free: Vec::new(),
                given: vec![0; count],
                came: vec![0; count],
                handed: vec![false; count],
                next: 0,
            })
            .collect();
        for (lender, lends) in lends.iter().enumerate() {
            let between = lends.map_or(BETWEEN, |lends| lends.clamp(1, MOST));
            for owner in 0..count {
                let used = if lender == owner { 1 } else { between };
                let (to, from) = RingBuffer::new(used);
                // All frames that may be with the owner fit, so giving one back never fails.
                let (back, home) = RingBuffer::new(used + MAX_BURST);
                if let Some(rings) = all.get_mut(lender) {
                    rings.to.push(to);
                    rings.home.push(home);
                }
                if let Some(rings) = all.get_mut(owner) {
                    rings.from.push(from);
                    rings.back.push(back);
                }
            }
        }
        all
    }

    /// Hands a frame to its owner; false when its ring is full.
    pub fn hand(&mut self, to: usize, frame: Frame) -> bool {
        if let Some(handed) = self.handed.get_mut(to) {
            *handed = true;
        }
        let ring = self.to.get_mut(to);
        let went = ring.is_some_and(|ring| ring.push(frame).is_ok());
        if let Some(given) = self.given.get_mut(to) {
            *given += u64::from(went);
        }
        went
    }

    /// Packets that a worker was handed so far.
    pub fn given(&self, to: usize) -> u64 {
        self.given.get(to).copied().unwrap_or(0)
    }

    /// Packets that a worker handed over and that were taken here so far.
    pub fn came(&self, from: usize) -> u64 {
        self.came.get(from).copied().unwrap_or(0)
    }

    /// Calls for each worker that was handed something since the last time.
    pub fn wake(&mut self, mut wake: impl FnMut(usize)) {
        for (to, handed) in self.handed.iter_mut().enumerate() {
            if std::mem::take(handed) {
                wake(to);
            }
        }
    }

    /// Appends the frames that came home.
    pub fn returned(&mut self, into: &mut Vec<Frame>) {
        for ring in &mut self.home {
            while let Ok(frame) = ring.pop() {
                into.push(frame);
            }
        }
    }

    /// Appends frames that this worker was handed, until `into` has `most`; they are seen as of this pool.
    pub fn taken(&mut self, into: &mut Vec<Frame>, most: usize, pool: Pool) {
        let count = self.from.len();
        for turn in 0..count {
            let lender = (self.next + turn) % count;
            while into.len() < most {
                let Some(Ok(frame)) = self.from.get_mut(lender).map(Consumer::pop) else {
                    break;
                };
                if let Some(came) = self.came.get_mut(lender) {
                    *came += 1;
                }
                let place = self.free.pop().unwrap_or(self.held.len());
                match self.held.get_mut(place) {
                    Some(held) => *held = Some((frame, lender)),
                    None => self.held.push(Some((frame, lender))),
                }
                into.push(Frame {
                    pool,
                    buffer: place as u64,
                    ..frame
                });
            }
        }
        self.next = (self.next + 1).checked_rem(count).unwrap_or(0);
    }

    /// Gives back a frame that was taken, by its buffer's number.
    pub fn give_back(&mut self, buffer: u64) {
        let held = self.held.get_mut(buffer as usize).and_then(Option::take);
        if let Some((frame, lender)) = held {
            self.free.push(buffer as usize);
            if let Some(ring) = self.back.get_mut(lender) {
                // There is room (`all`). A frame that found none would be lost to its queue, no more.
                let _ = ring.push(frame);
            }
        }
    }

    /// Whether nothing lies here for this worker.
    pub fn are_empty(&self) -> bool {
        self.from.iter().all(Consumer::is_empty)
    }

    /// Gives back what lies here for this worker and will not be taken; how many packets.
    pub fn abandon(&mut self) -> u64 {
        let mut count = 0;
        for (from, back) in self.from.iter_mut().zip(&mut self.back) {
            while let Ok(frame) = from.pop() {
                let _ = back.push(frame);
                count += 1;
            }
        }
        count
    }

    /// Bytes that they keep.
    pub fn bytes(&self) -> u64 {
        let to = self.to.iter().map(|r| r.buffer().capacity());
        let back = self.back.iter().map(|r| r.buffer().capacity());
        (to.chain(back).sum::<usize>() * size_of::<Frame>()) as u64
    }
}
