//! Moves of heavy keys between their owners and all workers (`millrace_steer::hybrid`), over threads.
//!
//! A move has a row's number, at which each worker makes it. At a promotion the owner publishes what its part has of the key, and
//! the others wait for that; an owner waits, if at all, at a smaller number.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use millrace_steer::hybrid::{Handover, Key, Keys, Move, Moving, Passed};

use crate::moved::Entries;

/// How long a worker waits before it looks again whether another one is gone.
const LOOK: Duration = Duration::from_millis(10);

/// What all workers have in common beside rows, where heavy keys are replicated and others sharded.
#[derive(Clone)]
pub struct Heavies {
    /// which packets and entries a key has
    pub keys: Arc<dyn Keys>,
    /// the objects that packets find by it, by their index in the module
    pub objects: Arc<[usize]>,
    /// what a row costs, as a part of what a packet does with receiving and sending it: by that keys are chosen
    pub row: f64,
}

impl std::fmt::Debug for Heavies {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Heavies")
            .field("objects", &self.objects)
            .finish_non_exhaustive()
    }
}

/// Moves that have numbers, and what owners published.
#[derive(Debug)]
pub(super) struct Moves {
    workers: usize,
    /// the number of the last row at which a worker has to stop: a move, or an edit
    last: AtomicU64,
    /// how often keys were announced or withdrawn
    announced: AtomicU64,
    /// promotions whose entries were looked for ahead, and those that walked whole tables
    listed: AtomicU64,
    walked: AtomicU64,
    /// a worker is gone, so that what others wait for may never come
    broken: AtomicBool,
    inside: Mutex<Inside>,
    published: Condvar,
}

#[derive(Debug, Default)]
struct Inside {
    /// by the row's number, with how many workers have not made it
    placed: BTreeMap<u64, (Moving<Key>, usize)>,
    passed: Passed<Entries>,
    /// promotions that were not published yet, with their owners
    open: BTreeMap<u64, u32>,
    /// keys that will be promoted (true), or will not after all, with their owners
    news: Vec<(bool, Key, u32)>,
    lost: u64,
}

impl Moves {
    pub fn new(workers: usize) -> Self {
        Self {
            workers,
            last: AtomicU64::new(0),
            announced: AtomicU64::new(0),
            listed: AtomicU64::new(0),
            walked: AtomicU64::new(0),
            broken: AtomicBool::new(false),
            inside: Mutex::default(),
            published: Condvar::new(),
        }
    }

    /// A worker has to stop at this row. Before the row is published.
    pub fn stop_at(&self, number: u64) {
        self.last.store(number, Ordering::Release);
    }

    /// Whether a worker that has applied this row may have to stop at a later one; mostly not, which costs one load.
    #[inline]
    pub fn behind(&self, applied: u64) -> bool {
        self.last.load(Ordering::Acquire) > applied
    }

    /// Keys will be promoted (true), or will not after all: their owners may look for entries.
    pub fn announce(&self, news: impl IntoIterator<Item = (bool, Key, u32)>) {
        let mut inside = self.lock();
        let before = inside.news.len();
        inside.news.extend(news);
        if inside.news.len() > before {
            self.announced.fetch_add(1, Ordering::Release);
        }
    }

    /// How often something was announced; mostly as before, which costs one load.
    #[inline]
    pub fn announced(&self) -> u64 {
        self.announced.load(Ordering::Acquire)
    }

    /// What was announced to a worker, told once.
    pub fn news(&self, worker: u32) -> Vec<(bool, Key)> {
        let mut mine = Vec::new();
        self.lock().news.retain(|(begins, key, owner)| {
            let own = *owner == worker;
            if own {
                mine.push((*begins, *key));
            }
            !own
        });
        mine
    }

    /// An owner made a promotion; `listed`: without a walk over whole tables.
    pub fn looked(&self, listed: bool) {
        let counter = if listed { &self.listed } else { &self.walked };
        counter.fetch_add(1, Ordering::Relaxed);
    }

    /// Promotions whose entries were looked for ahead, and those that walked whole tables.
    pub fn looks(&self) -> (u64, u64) {
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        (load(&self.listed), load(&self.walked))
    }

    /// A move. Before its row is published.
    pub fn place(&self, moving: Moving<Key>) {
        let mut inside = self.lock();
        if moving.direction == Move::Promote && self.workers > 1 {
            inside.open.insert(moving.number, u32::from(moving.owner));
        }
        let number = moving.number;
        inside.placed.insert(number, (moving, self.workers));
        self.stop_at(number);
    }

    /// What a worker does at this row, if it is a move; each worker asks once.
    pub fn at(&self, number: u64) -> Option<Moving<Key>> {
        let mut inside = self.lock();
        let (moving, left) = inside.placed.get_mut(&number)?;
        let moving = moving.clone();
        *left -= 1;
        if *left == 0 {
            inside.placed.remove(&number);
        }
        Some(moving)
    }

    /// The first promotion behind row `applied` and up to row `upto` that a worker would wait for: its number, and who owns it.
    pub fn waits(&self, worker: u32, applied: u64, upto: u64) -> Option<(u64, u32)> {
        if !self.behind(applied) || applied >= upto {
            return None;
        }
        let inside = self.lock();
        let open = inside.open.range(applied + 1..=upto);
        let mut others = open.filter(|(_, owner)| **owner != worker);
        others.next().map(|(number, owner)| (*number, *owner))
    }

    pub fn publish(&self, number: u64, entries: Entries) {
        let mut inside = self.lock();
        inside.open.remove(&number);
        let others = (self.workers - 1) as u16;
        inside.passed.publish(number, Some(entries), others);
        self.published.notify_all();
    }

    /// Waits for what the owner publishes at this row; none if a worker is gone.
    pub fn take(&self, number: u64) -> Option<Entries> {
        let mut inside = self.lock();
        loop {
            if let Some(entries) = inside.passed.take(number) {
                return entries;
            }
            if self.broken.load(Ordering::Relaxed) {
                return None;
            }
            let waited = self.published.wait_timeout(inside, LOOK);
            inside = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// A worker makes no moves any more. Those that others wait for may never come.
    pub fn broken(&self) {
        self.broken.store(true, Ordering::Relaxed);
        self.published.notify_all();
    }

    /// An entry found no room where it was moved to.
    pub fn lost(&self, entries: u64) {
        self.lock().lost += entries;
    }

    /// How many entries found no room.
    pub fn all_lost(&self) -> u64 {
        self.lock().lost
    }

    fn lock(&self) -> MutexGuard<'_, Inside> {
        // What a panicking thread has left is as whole as any.
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn promotion(number: u64, owner: u16) -> Moving<Key> {
        Moving {
            number,
            direction: Move::Promote,
            slot: 0,
            key: Key(7),
            owner,
        }
    }

    #[test]
    fn workers_wait_for_the_owner_until_it_has_published() {
        let moves = Moves::new(3);
        assert!(!moves.behind(0) && moves.waits(0, 0, 9).is_none());
        moves.place(promotion(4, 1));
        moves.place(promotion(6, 2));
        assert_eq!(moves.waits(0, 3, 9), Some((4, 1)));
        assert_eq!(moves.waits(1, 3, 9), Some((6, 2)));
        // Not of rows that it need not apply yet, nor of those that it has.
        assert_eq!(moves.waits(0, 3, 3), None);
        assert_eq!(moves.waits(0, 4, 5), None);
        moves.publish(4, Entries::default());
        assert_eq!(moves.waits(0, 3, 5), None);
        assert!(moves.take(4).is_some() && moves.take(4).is_some());
        let asked = (0..3).map(|_| moves.at(4).is_some());
        assert!(asked.eq([true; 3]));
        assert!(moves.at(4).is_none());
    }

    #[test]
    fn who_waits_for_a_worker_that_is_gone_is_told() {
        let moves = Moves::new(2);
        moves.place(promotion(1, 0));
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| moves.take(1));
            moves.broken();
            assert!(waiting.join().is_ok_and(|taken| taken.is_none()));
        });
    }
}
