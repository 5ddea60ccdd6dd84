//! Queues of a port whose packets are handed to the workers that own them.
//!
//! Where a device cannot be told who owns which packet, the worker that receives one hashes it (RSS in
//! software) and hands it to its owner over a ring; where a device can, this is for the packets that it
//! cannot steer. A ring leads from each worker to each other one, so packets that one queue received stay in
//! order, and so do those of a flow, which a device gives to one queue.
//!
//! A frame is not copied: the owner works on it where it lies, in memory of the queue that received it, and
//! sends it back over another ring; only its lender touches its own queue. So that no other queue keeps the
//! buffer, the owner sees it as one of a pool of its own.
//!
//! A ring has room for all buffers of the queue that lends them, where it says how many it has. Else, as on a NIC, a packet that finds the ring of its owner
//! full is lost, and counted as `missed` by its owner.
//!
//! Where packets have classes ([`crate::classes`]), the owner is the worker that has the packet's class, and a class
//! may move (`held.rs`).

mod bell;
mod held;
mod parked;
mod rings;

use std::os::fd::RawFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use millrace_steer::Owners;

use super::{Departure, Frame, Pool, PortError, Queue, QueueCounts};
use crate::classes::Classes;
use crate::classes::away::{MARK, PARKED, Refusal, Whose};
use crate::classes::table::Indirection;
pub(super) use bell::Bell;
use held::Held;
use parked::Parked;
use rings::Rings;

/// How long a worker that ends waits for the others, which may still receive packets of its own: they end as soon as they have a processor, which
/// on a busy machine takes some turns of the scheduler. What comes later is lost, and counted.
const TOGETHER: Duration = Duration::from_millis(500);

/// Who gets which packet.
pub enum By {
    /// the worker that owns it
    Owner {
        /// a port of the function each
        owners: Vec<Owners>,
        /// the device brings packets to their owners, but for those that it cannot
        told: bool,
    },
    /// the worker that has its class
    Class {
        /// the classes
        classes: Arc<Classes>,
        /// the port of the function that packets come in at
        port: usize,
    },
}

/// What the workers of a port share.
struct Hub {
    by: By,
    bells: Vec<Bell>,
    /// packets that found the ring of a worker full
    missed: Vec<AtomicU64>,
    /// workers whose queue will give nothing more
    ended: AtomicUsize,
}

/// One worker's part.
struct HandOver {
    worker: usize,
    hub: Arc<Hub>,
    inner: Box<dyn Queue>,
    rings: Rings,
    /// where packets have classes
    held: Option<Held>,
    /// where other machines have classes
    parked: Option<Parked>,
    /// what frames of other workers' queues are seen under
    pool: Pool,
    /// scratch: what the queue gave
    received: Vec<Frame>,
    /// scratch: frames that go back to the queue
    back: Vec<Frame>,
    /// packets that this worker left behind at the end
    missed: u64,
    closed: Option<Instant>,
    /// counted in `Hub::ended`
    counted: bool,
}

/// The same queues, a worker each, that give each worker the packets that are its own; of a device with this table, if it can be changed.
///
/// # Errors
/// The system gives no descriptors to wait by.
pub fn hand_over(
    word: &str,
    queues: Vec<Box<dyn Queue>>,
    by: By,
    table: Option<&Arc<dyn Indirection>>,
) -> Result<Vec<Box<dyn Queue>>, PortError> {
    let count = queues.len();
    let failed = |e: std::io::Error| PortError::Live {
        word: word.to_owned(),
        what: format!("cannot hand packets over: {e}"),
        help: "raise the limit of open files (ulimit -n), or use fewer workers".into(),
    };
    let bells = queues.iter().map(|queue| Bell::new(queue.descriptor()));
    let hub = Arc::new(Hub {
        by,
        bells: bells.collect::<Result<_, _>>().map_err(failed)?,
        missed: (0..count).map(|_| AtomicU64::new(0)).collect(),
        ended: AtomicUsize::new(0),
    });
    let lends: Vec<_> = queues.iter().map(|queue| queue.lends()).collect();
    let parts = queues.into_iter().zip(Rings::all(&lends)).enumerate();
    Ok(parts
        .map(|(worker, (inner, rings))| {
            Box::new(HandOver {
                worker,
                held: Held::join(&hub, worker, table.cloned()),
                parked: Parked::of(&hub.by),
                hub: hub.clone(),
                inner,
                rings,
                pool: Pool::fresh(),
                received: Vec::new(),
                back: Vec::new(),
                missed: 0,
                closed: None,
                counted: false,
            }) as Box<dyn Queue>
        })
        .collect())
}

impl HandOver {
    /// Where a frame of this worker's queue goes; notes the frame's class, if it has one.
    fn whose(&self, frame: &mut Frame) -> Whose {
        let hub = &*self.hub;
        let length = frame.end.addr() - frame.data.addr();
        // SAFETY: the queue lends the frame: `length` bytes lie between its bounds, and nobody else has it.
        let bytes = unsafe { std::slice::from_raw_parts(frame.data, length) };
        let last = hub.bells.len().saturating_sub(1);
        let (owners, told) = match &hub.by {
            By::Owner { owners, told } => (owners, *told),
            By::Class { classes, .. } => {
                if frame.hops & MARK == 0 {
                    let held = self.held.as_ref();
                    frame.class = held.map_or(0, |held| held.class(classes, frame, bytes));
                }
                return match classes.whose(frame.class) {
                    Whose::Worker(worker) => Whose::Worker(worker.min(last)),
                    elsewhere => elsewhere,
                };
            }
        };
        let Some(owners) = owners.get(frame.port as usize).or(owners.last()) else {
            return Whose::Worker(self.worker);
        };
        let owner = if told {
            owners.exception(bytes)
        } else {
            Some(owners.owner(bytes))
        };
        Whose::Worker(owner.map_or(self.worker, |owner| (owner as usize).min(last)))
    }

    /// Takes back what other workers are through with.
    fn reclaim(&mut self) {
        self.back.clear();
        self.rings.returned(&mut self.back);
        if !self.back.is_empty() {
            self.inner.release(&self.back);
        }
    }

    /// Receives from the queue: what is this worker's own goes into `into`, the rest to its owners. How many
    /// packets came.
    fn poll(
        &mut self,
        into: &mut Vec<Frame>,
        most: usize,
        before: u64,
    ) -> Result<usize, PortError> {
        let mut received = std::mem::take(&mut self.received);
        received.clear();
        // Before it is received: what comes by a table of before comes until then.
        let leaves = self.held.as_ref().is_some_and(Held::leaves);
        let result = self.inner.receive(&mut received, most, before);
        self.back.clear();
        let accepts = self.parked.as_ref().is_none_or(Parked::accepts);
        for frame in &mut received {
            let whose = self.whose(frame);
            if self.held.as_mut().is_some_and(|held| held.keeps(frame)) {
                continue;
            }
            let whose = match &mut self.parked {
                None => whose,
                Some(parked) => {
                    match parked.sees(frame, whose, (accepts, PARKED), &mut self.back) {
                        Some(worker) => Whose::Worker(worker),
                        None => continue,
                    }
                }
            };
            // Without other machines each class has a worker.
            let Whose::Worker(to) = whose else { continue };
            if to == self.worker {
                into.push(*frame);
            } else if !self.rings.hand(to, *frame) {
                self.back.push(*frame);
                if let Some(missed) = self.hub.missed.get(to) {
                    missed.fetch_add(1, Ordering::Relaxed);
                }
            }
        }
        if !self.back.is_empty() {
            self.inner.release(&self.back);
        }
        self.wake();
        let count = received.len();
        self.received = received;
        if leaves && count < most && result.is_ok() {
            self.held.iter_mut().for_each(Held::ran_dry);
        }
        result.map(|_| count)
    }

    /// Wakes the workers that were handed something.
    fn wake(&mut self) {
        let bells = &self.hub.bells;
        self.rings.wake(|to| {
            if let Some(bell) = bells.get(to) {
                bell.ring();
            }
        });
    }

    /// Sees to packets whose class moves: what is held and may go, goes.
    fn see_to_classes(&mut self, into: &mut Vec<Frame>, most: usize) {
        let (Some(held), By::Class { classes, .. }) = (&mut self.held, &self.hub.by) else {
            return;
        };
        held.look(classes, &self.rings);
        let parked = self.parked.as_mut();
        if let Some(parked) = parked.filter(|parked| !parked.is_empty()) {
            self.back.clear();
            let moves = held.moves();
            parked.go(classes, moves, &mut self.back, |frame, worker| {
                held::to_worker(frame, worker, self.worker, &mut self.rings, into, most)
            });
            self.inner.release(&self.back);
            self.wake();
        }
        let (Some(held), By::Class { classes, .. }) = (&mut self.held, &self.hub.by) else {
            return;
        };
        if held.may_go() {
            self.back.clear();
            let way = (self.parked.as_mut(), &mut self.back);
            held.go(classes, self.worker, &mut self.rings, (into, most), way);
            if !self.back.is_empty() {
                self.inner.release(&self.back);
            }
            self.wake();
        }
    }

    /// Takes marks out of what this worker gets, and answers them: what came before them it works on before anything that it asks for later.
    fn answers(&mut self, into: &mut Vec<Frame>, start: usize) {
        let Some(parked) = &self.parked else { return };
        let is_mark = |frame: &Frame| frame.hops & MARK != 0;
        let gets = into.get(start..).unwrap_or_default();
        if !gets.iter().any(is_mark) {
            return;
        }
        let marks: Vec<Frame> = gets.iter().copied().filter(is_mark).collect();
        for mark in &marks {
            parked.reached(mark);
        }
        let mut at = 0;
        into.retain(|frame| {
            at += 1;
            at <= start || !is_mark(frame)
        });
        self.release(&marks);
    }

    /// Counts this worker's queue as one that gives nothing more.
    fn count_out(&mut self) {
        if !std::mem::replace(&mut self.counted, true) {
            self.hub.ended.fetch_add(1, Ordering::AcqRel);
            self.hub.bells.iter().for_each(Bell::ring);
        }
    }

    fn all_out(&self) -> bool {
        self.hub.ended.load(Ordering::Acquire) >= self.hub.bells.len()
    }
}

// SAFETY: frames of this worker's queue are as that queue lends them. Those of other workers' queues come over
// a ring, which hands each to one worker; the lender's queue has it back only after it came back over the
// other ring, and lives until all workers have ended (`serve` drops them together).
unsafe impl Queue for HandOver {
    fn receive(
        &mut self,
        into: &mut Vec<Frame>,
        most: usize,
        before: u64,
    ) -> Result<usize, PortError> {
        let start = into.len();
        if let Some(bell) = self.hub.bells.get(self.worker) {
            bell.awake();
        }
        loop {
            self.reclaim();
            // Before anything is taken: the worker is through with what it was given before.
            self.see_to_classes(into, start + most);
            self.rings.taken(into, start + most, self.pool);
            let room = most - (into.len() - start);
            let parks = self.parked.as_ref().map_or(0, Parked::count);
            let holds = self.held.as_ref().map_or(0, Held::count);
            let still = self.held.as_ref().is_some_and(Held::is_still);
            if self.counted {
                // Nothing comes any more, by whatever table.
                self.held
                    .iter_mut()
                    .filter(|h| h.leaves())
                    .for_each(Held::ran_dry);
            }
            if room > 0 && !self.counted && holds < held::MOST && !still {
                let came = self.poll(into, room, before)?;
                // In this order: what the queue gave before it ended is in the rings.
                if came == 0 && holds + parks == 0 && (self.closed.is_some() || self.inner.ended())
                {
                    self.count_out();
                }
            }
            self.answers(into, start);
            let late = self.closed.is_none_or(|at| at.elapsed() > TOGETHER);
            if into.len() > start || late || self.ended() {
                return Ok(into.len() - start);
            }
            std::thread::yield_now();
        }
    }

    fn refused(&mut self, each: &mut dyn FnMut(u32, Refusal, u64, u64)) {
        if let Some(parked) = &mut self.parked {
            parked.refused(each);
        }
    }

    fn transmit(&mut self, packets: &mut [Departure]) -> Result<usize, PortError> {
        self.inner.transmit(packets)
    }

    fn flush(&mut self) -> Result<(), PortError> {
        self.inner.flush()
    }

    fn release(&mut self, frames: &[Frame]) {
        self.back.clear();
        for frame in frames {
            if frame.pool == self.pool {
                self.rings.give_back(frame.buffer);
            } else {
                self.back.push(*frame);
            }
        }
        self.inner.release(&self.back);
    }

    fn close(&mut self) {
        if let By::Class { classes, .. } = &self.hub.by {
            classes.close();
        }
        self.inner.close();
        self.closed.get_or_insert_with(Instant::now);
    }

    fn ended(&self) -> bool {
        self.all_out() && self.rings.are_empty()
    }

    fn idle(&self) -> bool {
        self.inner.idle()
    }

    fn finish(&mut self) -> Result<(), PortError> {
        self.count_out();
        self.missed += self.rings.abandon();
        if let Some(held) = &mut self.held {
            self.back.clear();
            held.abandon(&mut self.back);
            if let Some(parked) = &mut self.parked {
                parked.abandon(&mut self.back);
            }
            self.missed += self.back.len() as u64;
            self.inner.release(&self.back);
        }
        self.inner.finish()
    }

    fn kept(&self) -> Option<millrace_traffic::capture::Written> {
        self.inner.kept()
    }

    fn counts(&self) -> QueueCounts {
        let counts = self.inner.counts();
        let full = self.hub.missed.get(self.worker);
        let full = full.map_or(0, |missed| missed.load(Ordering::Relaxed));
        QueueCounts {
            missed: counts.missed + full + self.missed,
            ..counts
        }
    }

    fn descriptor(&self) -> Option<RawFd> {
        if !self.counted {
            self.inner.descriptor()?;
        }
        let waits = |held: &Held| held.count() > 0 || held.is_still() || held.looks_out();
        if self.held.as_ref().is_some_and(waits) {
            return None;
        }
        if self.parked.as_ref().is_some_and(|p| !p.is_empty()) {
            return None;
        }
        let fd = self.hub.bells.get(self.worker)?.asleep();
        // What came before the bell was set does not ring it.
        self.rings.are_empty().then_some(fd)
    }

    fn memory(&self) -> u64 {
        self.inner.memory() + self.rings.bytes()
    }
}

#[cfg(test)]
mod tests;
#[cfg(test)]
mod tests_away;
#[cfg(test)]
mod tests_classes;
#[cfg(test)]
mod tests_table;
