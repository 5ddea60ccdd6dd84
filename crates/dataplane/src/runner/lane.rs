//! A worker's way to the sequencer, as a queue: it gives the worker its packets of each window, and takes back what
//! leaves.
//!
//! It is a port of both directions that is never full. Nothing is copied on the way out: packets stay where they are,
//! with descriptors that say what becomes of them, until the sequencer has written what leaves.

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::time::Duration;

use super::sequencer::{Next, Sequencer};
use super::window::{Batch, Kept, Part, Step};
use super::{IDLE, Progress};
use crate::mailbox::Order;
use crate::module::{Record, abi};
use crate::port::{Departure, Frame, PortError, Queue};

/// Who gives packets.
enum Feed {
    /// a sequencer of the worker's own
    Own(Box<Sequencer>),
    /// that of all workers, on another thread
    Line {
        work: Receiver<Box<Batch>>,
        done: Sender<Box<Batch>>,
        /// where orders go
        orders: std::sync::Arc<super::sequencer::Orders>,
    },
    /// nobody any more
    None,
}

/// A worker's queue.
pub struct Lane {
    feed: Feed,
    /// the window at work
    batch: Option<Box<Batch>>,
    /// its step that comes next
    step: usize,
    /// the time that the run begins with, ns, until packets are asked for
    start: Option<u64>,
    /// the number of the last packet
    last: u64,
    /// records since the last window ended
    records: Vec<Kept>,
    over: bool,
}

impl Lane {
    fn new(feed: Feed, start: u64) -> Self {
        Self {
            feed,
            batch: None,
            step: 0,
            start: Some(start),
            last: 0,
            records: Vec::new(),
            over: false,
        }
    }

    /// The queue of the only worker.
    pub fn alone(sequencer: Sequencer) -> Self {
        let start = sequencer.clock();
        Self::new(Feed::Own(Box::new(sequencer)), start)
    }

    /// The queue of one of several.
    pub fn of(sequencer: &Sequencer, work: Receiver<Box<Batch>>, done: Sender<Box<Batch>>) -> Self {
        let feed = Feed::Line {
            work,
            done,
            orders: sequencer.orders(),
        };
        Self::new(feed, sequencer.clock())
    }

    /// Goes to the next window; waits a moment for it.
    fn advance(&mut self) {
        self.step = 0;
        match &mut self.feed {
            Feed::Own(sequencer) => match sequencer.next() {
                Next::Batch(batch) => self.batch = Some(batch),
                Next::Nothing => {}
                Next::Over => self.over = true,
            },
            Feed::Line { work, .. } => match work.recv_timeout(IDLE) {
                Ok(batch) => self.batch = Some(batch),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => self.over = true,
            },
            Feed::None => self.over = true,
        }
    }

    /// Lends the next packets, with their descriptors; see `Burst::swap`.
    pub fn receive_described(
        &mut self,
        frames: &mut Vec<Frame>,
        descriptors: &mut Vec<abi::Packet>,
        before: u64,
    ) -> usize {
        self.start = None;
        if self.batch.is_none() && !self.over {
            self.advance();
        }
        let Some(batch) = &mut self.batch else {
            return 0;
        };
        while let Some(step) = batch.steps.get_mut(self.step) {
            match step {
                // Its timers have not fired.
                Step::Mark(time) if *time >= before => break,
                Step::Mark(_) => self.step += 1,
                Step::Burst(burst) => {
                    self.step += 1;
                    self.last = burst.last().unwrap_or(self.last);
                    burst.swap(frames, descriptors);
                    return burst.len();
                }
            }
        }
        0
    }

    /// Takes back the packets that were lent last; their descriptors say what became of them.
    #[inline]
    pub fn deliver(&mut self, frames: &mut Vec<Frame>, descriptors: &mut Vec<abi::Packet>) {
        let step = self.step.wrapping_sub(1);
        if let Some(burst) = self.batch.as_mut().and_then(|b| b.burst(step)) {
            burst.swap(frames, descriptors);
        }
    }

    /// Takes a record that came out at this time, ns.
    pub fn keep(&mut self, record: Record, time: u64) {
        self.records.push(Kept {
            after: self.last,
            time,
            record,
        });
    }

    /// Where the worker is through with a window: the run's clock (ns), and whether entries are to be counted.
    #[inline]
    pub fn at_end(&self) -> Option<(u64, bool)> {
        let batch = self.batch.as_ref()?;
        (self.step >= batch.steps.len()).then_some((batch.clock, batch.count))
    }

    /// Where state is replicated, the last row of the window; else 0.
    #[inline]
    pub fn upto(&self) -> u64 {
        self.batch.as_ref().map_or(0, |batch| batch.upto)
    }

    /// Gives the window back, with what is known of the parts of divided objects.
    pub fn close_window(&mut self, parts: Vec<Part>) {
        let Some(mut batch) = self.batch.take() else {
            return;
        };
        batch.records.append(&mut self.records);
        batch.parts = parts;
        match &mut self.feed {
            Feed::Own(sequencer) => sequencer.collect(batch),
            Feed::Line { done, .. } => self.over |= done.send(batch).is_err(),
            Feed::None => {}
        }
    }

    /// Ends the run before its inputs do: at the end of the window, or (`Drain`) of what inputs have taken.
    pub fn order_end(&mut self, order: Order) {
        match &mut self.feed {
            Feed::Own(sequencer) => sequencer.orders().give(order),
            Feed::Line { orders, .. } => orders.give(order),
            Feed::None => {}
        }
    }

    /// Reads nothing more: time is up.
    pub fn expire(&mut self) {
        if let Feed::Own(sequencer) = &mut self.feed {
            sequencer.expire();
        }
    }

    /// How far the only worker is.
    pub fn progress(&self) -> Option<Progress> {
        match &self.feed {
            Feed::Own(sequencer) => Some(sequencer.progress()),
            _ => None,
        }
    }

    /// At the end: the records that came out after the last window, and the only worker's sequencer.
    pub fn end(&mut self) -> (Vec<Kept>, Option<Sequencer>) {
        let records = std::mem::take(&mut self.records);
        match std::mem::replace(&mut self.feed, Feed::None) {
            Feed::Own(sequencer) => (records, Some(*sequencer)),
            _ => (records, None),
        }
    }
}

// SAFETY: frames come from the burst at work, each of a slot of its own, which is not touched before the window is closed.
unsafe impl Queue for Lane {
    fn receive(
        &mut self,
        into: &mut Vec<Frame>,
        _: usize,
        before: u64,
    ) -> Result<usize, PortError> {
        Ok(self.receive_described(into, &mut Vec::new(), before))
    }

    /// Never asked: the descriptors say what leaves.
    fn transmit(&mut self, _: &mut [Departure]) -> Result<usize, PortError> {
        Ok(0)
    }

    /// Nothing: the sequencer takes the buffers back when it has written them.
    fn release(&mut self, _frames: &[Frame]) {}

    fn ended(&self) -> bool {
        self.over && self.batch.is_none()
    }

    fn keeps_time(&self) -> bool {
        true
    }

    fn ready(&mut self, _patience: Duration) -> bool {
        true
    }

    fn next_stamp(&self) -> Option<u64> {
        if self.start.is_some() {
            return self.start;
        }
        match self.batch.as_ref()?.steps.get(self.step)? {
            Step::Mark(time) => Some(*time),
            Step::Burst(_) => None,
        }
    }

    fn lane(&mut self) -> Option<&mut Lane> {
        Some(self)
    }
}
