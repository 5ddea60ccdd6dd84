//! Packets of one thread that are numbered together, where several threads play one sequencer.
//!
//! A batch gets its place in the order of all batches, and its time, before anything is done for its packets. Then its thread
//! makes their rows, which takes the most time, beside other threads. Batches are numbered in their order, and so their rows become
//! visible and their descriptors are handed over. Rows are written into the ring beside other threads again. If time has gone on
//! all the same (an edit, a timer) or settings have changed, the rows of a batch are made again when it is numbered.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};

use millrace_steer::hybrid::Key;
use millrace_steer::sequence::Extract;

use super::rows::Rows;
use super::{Counted, Group, Place, Sequencing};
use crate::module::ModuleError;

/// Looks for a turn after which a thread without a processor of its own lets others run.
const PATIENCE: u32 = 64;

/// A packet whose row is made.
#[derive(Clone, Copy, Debug)]
pub struct Came<'a> {
    /// its bytes
    pub frame: &'a [u8],
    /// the port by which it came
    pub port: u32,
    /// its number among all that came
    pub number: u64,
}

/// Order of the batches, and whose turn it is.
#[derive(Debug, Default)]
pub(super) struct Turns {
    next: Mutex<Next>,
    numbered: Turn,
    published: Turn,
    handed: Turn,
}

/// What the next batch gets, on lines of its own.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Next {
    /// its place in the order
    batch: u64,
    /// at least its time, ns
    time: u64,
}

/// How many have done something: on lines of its own, for what lies beside it is not fetched again with each store then.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(super) struct Turn(pub AtomicU64);

/// A batch whose packets have numbers.
#[derive(Clone, Copy, Debug)]
pub struct Numbered {
    batch: u64,
    /// number of the last row by then
    upto: u64,
}

/// How a thread waits for its turn.
#[derive(Clone, Copy)]
pub struct Wait<'a> {
    /// it has a processor of its own, and never pauses
    pub pinned: bool,
    /// the threads end, and nobody waits any more
    pub over: &'a (dyn Fn() -> bool + Sync),
}

impl Wait<'_> {
    /// Until this is so; false where all ends first.
    fn until(self, mut so: impl FnMut() -> bool) -> bool {
        let mut looks = 0_u32;
        while !so() {
            looks = looks.wrapping_add(1);
            if looks.is_multiple_of(PATIENCE) {
                if (self.over)() {
                    return false;
                }
                if !self.pinned {
                    std::thread::yield_now();
                }
            }
            std::hint::spin_loop();
        }
        true
    }

    /// A lock for which nobody waits long.
    pub fn lock<T>(self, what: &Mutex<T>) -> Option<MutexGuard<'_, T>> {
        let mut found = None;
        self.until(|| {
            found = match what.try_lock() {
                Ok(guard) => Some(guard),
                // What a panicking thread has left is as whole as any.
                Err(TryLockError::Poisoned(left)) => Some(left.into_inner()),
                Err(TryLockError::WouldBlock) => None,
            };
            found.is_some()
        });
        found
    }
}

/// What a packet is to the history.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    /// of a sharded key: its owner alone has its state
    Sharded,
    /// it cannot touch state
    Plain,
    /// it has a row
    Touch,
}

/// One thread's part of a sequencer.
pub struct Batch {
    sequencing: Arc<Mutex<Sequencing>>,
    group: Arc<Group>,
    rows: Rows,
    row_bytes: usize,
    /// its place in the order of all batches
    batch: u64,
    /// for which the rows are made, ns
    time: u64,
    /// of each packet what it is to the history, and for its row a place behind those of the others
    kinds: Vec<Kind>,
    made: Vec<u8>,
    /// where the packets are in the order of rows
    places: Vec<Place>,
    /// numbers of the last row before theirs, and of the last of theirs
    written: (u64, u64),
}

impl Batch {
    /// Of another thread that plays this sequencer.
    ///
    /// # Errors
    /// There is no memory for the instance that makes its rows.
    pub fn new(sequencing: &Arc<Mutex<Sequencing>>) -> Result<Self, ModuleError> {
        let mut shared = sequencing.lock().unwrap_or_else(PoisonError::into_inner);
        let rows = shared.rows()?;
        let group = shared.group().clone();
        drop(shared);
        group.periods.join();
        Ok(Self {
            sequencing: sequencing.clone(),
            row_bytes: rows.shape().row_bytes(),
            rows,
            batch: 0,
            time: group.start,
            kinds: Vec::new(),
            made: Vec::new(),
            places: Vec::new(),
            written: (0, 0),
            group,
        })
    }

    /// Begins with packets of this time, ns, or that of the batch before if it is later; it has to be numbered then, with packets
    /// or without. False where all ends.
    pub fn begin(&mut self, time: u64, wait: Wait<'_>) -> bool {
        let Some(mut next) = wait.lock(&self.group.turns.next) else {
            return false;
        };
        self.batch = next.batch;
        self.time = time.max(next.time);
        *next = Next {
            batch: next.batch + 1,
            time: self.time,
        };
        drop(next);
        self.kinds.clear();
        self.made.clear();
        true
    }

    /// The sequencer when it is this batch's turn; none where all ends.
    fn turn<'a>(
        &self,
        sequencing: &'a Mutex<Sequencing>,
        wait: Wait<'_>,
    ) -> Option<MutexGuard<'a, Sequencing>> {
        let turn = &self.group.turns.numbered.0;
        if !wait.until(|| turn.load(Ordering::Acquire) == self.batch) {
            return None;
        }
        wait.lock(sequencing)
    }

    /// It is the next batch's turn: this one has its numbers.
    fn numbered(&self, shared: MutexGuard<'_, Sequencing>) -> Numbered {
        let upto = shared.sequence();
        drop(shared);
        let turn = &self.group.turns.numbered.0;
        turn.store(self.batch + 1, Ordering::Release);
        Numbered {
            batch: self.batch,
            upto,
        }
    }

    /// The next packet; `sharded`: only its key's owner has its state, so that it has no row.
    pub fn add(&mut self, came: Came<'_>, sharded: bool) {
        let at = self.kinds.len();
        self.kinds.push(match sharded {
            true => Kind::Sharded,
            false => Kind::Plain,
        });
        self.made.resize((at + 1) * self.row_bytes, 0);
        if !sharded {
            self.row(at, came);
        }
    }

    /// Makes a packet's row.
    fn row(&mut self, at: usize, came: Came<'_>) {
        let place = at * self.row_bytes..(at + 1) * self.row_bytes;
        let row = self.made.get_mut(place).unwrap_or_default();
        self.rows.number(came.number);
        let touch = self
            .rows
            .extract(came.frame, came.port as u16, self.time, row);
        if let Some(kind) = self.kinds.get_mut(at) {
            *kind = if touch { Kind::Touch } else { Kind::Plain };
        }
    }

    /// Numbers the packets, the `i`th of which is `came(i)`, and writes their rows. None where all ends.
    pub fn number<'a>(
        &mut self,
        came: impl Fn(usize) -> Came<'a>,
        wait: Wait<'_>,
    ) -> Option<Numbered> {
        let count = self.kinds.len();
        self.places.clear();
        let sequencing = self.sequencing.clone();
        let mut shared = self.turn(&sequencing, wait)?;
        let first = shared.time_for(self.time).and_then(|time| {
            if shared.catch_up(&mut self.rows) || time != self.time {
                self.time = time;
                self.made.fill(0);
                for at in 0..count {
                    if self.kinds.get(at) != Some(&Kind::Sharded) {
                        self.row(at, came(at));
                    }
                }
            }
            let rows = self.kinds.iter().filter(|kind| **kind == Kind::Touch);
            let rows = rows.count() as u64;
            let last = count.checked_sub(1).map(|last| came(last).number);
            shared.together((count as u64, rows), last)
        });
        // Other threads wait for the numbers, not for the rows.
        let numbered = self.numbered(shared);
        self.written = (0, 0);
        if let Ok(first) = first {
            let mut last = first;
            let heavies = self.group.heavies().is_some();
            let mut rows = self.made.chunks(self.row_bytes);
            for kind in &self.kinds {
                let row = rows.next();
                if *kind == Kind::Touch {
                    last += 1;
                    self.group
                        .ring
                        .put_bytes(last, self.time, row.unwrap_or(&[]));
                }
                let place = Place::new(last, *kind == Kind::Touch);
                let heavy = heavies && *kind != Kind::Sharded;
                self.places
                    .push(if heavy { place.of_heavy() } else { place });
            }
            self.written = (first, last);
        }
        // Without a number left a packet has no row, and is told as one.
        self.places.resize(count, Place::default());
        Some(numbered)
    }

    /// This thread has no packets of the period of the choice of heavy keys that are not numbered, and has counted these; where it is the
    /// last to say so it chooses. The next period begins when [`Self::periods`] says so. `frame` gives a packet of a key.
    pub fn arrive<'a>(
        &mut self,
        counted: Counted,
        (time, frame): (u64, &dyn Fn(Key) -> &'a [u8]),
        wait: Wait<'_>,
    ) {
        if let Some(all) = self.group.periods.arrive(counted) {
            self.choose(&all, (time, frame), wait);
        }
    }

    /// This thread has no packets any more; `arrived`: the number of the period whose end it came to last.
    pub fn leave<'a>(
        &mut self,
        (counted, arrived): (Counted, Option<u64>),
        (time, frame): (u64, &dyn Fn(Key) -> &'a [u8]),
        wait: Wait<'_>,
    ) {
        if let Some(all) = self.group.periods.leave(counted, arrived) {
            self.choose(&all, (time, frame), wait);
        }
    }

    /// How many periods are over.
    #[inline]
    #[must_use]
    pub fn periods(&self) -> u64 {
        self.group.periods.over()
    }

    /// The heavy keys of the period.
    #[must_use]
    pub fn heavy(&self) -> Arc<[Key]> {
        self.group.periods.heavy()
    }

    fn choose<'a>(
        &mut self,
        counted: &Counted,
        (time, frame): (u64, &dyn Fn(Key) -> &'a [u8]),
        wait: Wait<'_>,
    ) {
        if !self.begin(time, wait) {
            return;
        }
        let sequencing = self.sequencing.clone();
        let Some(mut shared) = self.turn(&sequencing, wait) else {
            return;
        };
        shared.catch_up(&mut self.rows);
        // Without a number left packets have none either, which is told there.
        let heavy = shared.period(counted, self.time, frame);
        let numbered = self.numbered(shared);
        if self.publish(numbered, wait) {
            self.handed(numbered, wait);
            self.group.periods.next(heavy.unwrap_or_default());
        }
    }

    /// Gives replicas what is due while no packet comes: timers, edits; the last row, where no thread has packets any more (`ended`).
    pub fn idle(&mut self, time: u64, ended: bool, wait: Wait<'_>) {
        if self.group.last().is_some() || !self.begin(time, wait) {
            return;
        }
        let sequencing = self.sequencing.clone();
        let Some(mut shared) = self.turn(&sequencing, wait) else {
            return;
        };
        shared.catch_up(&mut self.rows);
        let last = ended && self.group.sealed();
        // Without a number left packets are not numbered either, which is told there. Behind the last row there is none.
        let _ = match last {
            // What is due by now is due at the end.
            true => shared.last(self.time),
            false => shared.idle(self.time),
        };
        let numbered = self.numbered(shared);
        if self.publish(numbered, wait) {
            self.handed(numbered, wait);
        }
        if last {
            self.group.end_at(numbered.upto);
        }
    }

    /// Addresses of the lines of memory that the rows lie in which were numbered: a device writes into a cache that all cores share.
    pub fn lines(&self) -> impl Iterator<Item = *const u8> {
        let (before, last) = self.written;
        self.group.ring.lines(before.saturating_add(1), last)
    }

    /// Time and places of the packets that were numbered, in their order.
    pub fn places(&self) -> (u64, &[Place]) {
        (self.time, &self.places)
    }

    /// Shows the replicas the rows of a batch once those of all before it are. Before descriptors of its packets are handed
    /// over. False where all ends first.
    pub fn publish(&self, numbered: Numbered, wait: Wait<'_>) -> bool {
        let turn = &self.group.turns.published.0;
        if !wait.until(|| turn.load(Ordering::Acquire) == numbered.batch) {
            return false;
        }
        self.group.ring.publish(numbered.upto);
        turn.store(numbered.batch + 1, Ordering::Release);
        true
    }

    /// The descriptors of all packets of a batch have been handed to their workers, and those of all before it.
    pub fn handed(&self, numbered: Numbered, wait: Wait<'_>) {
        let turn = &self.group.turns.handed.0;
        if wait.until(|| turn.load(Ordering::Acquire) == numbered.batch) {
            self.group.handed.0.store(numbered.upto, Ordering::Release);
            turn.store(numbered.batch + 1, Ordering::Release);
        }
    }
}
