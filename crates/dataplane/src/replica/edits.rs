//! Edits of replicated state from outside: each has a row's number, at which all replicas make it.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::module::Instance;

/// What is done to a replica's state, at a time in ns.
pub type Change = dyn Fn(&mut Instance, u64) + Send + Sync;

/// A change of state from outside.
#[derive(Clone)]
pub struct Edit {
    /// What is done to each replica's state, at the time (ns) of its row. It is called once for each worker, with the worker's
    /// own instance, and does the same to equal states.
    pub make: Arc<Change>,
    /// It changes settings, which rows depend on: the sequencer's own instance makes it, too.
    pub settings: bool,
}

/// Edits that wait, and those that have numbers.
pub(super) struct Edits {
    workers: usize,
    waiting: AtomicBool,
    inside: Mutex<Inside>,
}

#[derive(Default)]
struct Inside {
    /// with the numbers by which they can be withdrawn
    queue: VecDeque<(u64, Edit)>,
    asked: u64,
    /// by the row's number, with how many replicas have not made it
    placed: BTreeMap<u64, (Edit, usize)>,
    closed: bool,
}

impl std::fmt::Debug for Edits {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Edits").finish_non_exhaustive()
    }
}

impl Edits {
    pub fn new(workers: usize) -> Self {
        Self {
            workers,
            waiting: AtomicBool::new(false),
            inside: Mutex::default(),
        }
    }

    pub fn ask(&self, edit: Edit) -> Option<u64> {
        let mut inside = self.lock();
        if inside.closed {
            return None;
        }
        inside.asked += 1;
        let number = inside.asked;
        inside.queue.push_back((number, edit));
        // Under the lock: none is there without the flag once the lock is free.
        self.waiting.store(true, Ordering::Release);
        Some(number)
    }

    pub fn withdraw(&self, asked: u64) -> bool {
        let mut inside = self.lock();
        let before = inside.queue.len();
        inside.queue.retain(|(number, _)| *number != asked);
        inside.queue.len() < before
    }

    /// Whether any waits for a number; mostly none, which costs one load.
    #[inline]
    pub fn wait(&self) -> bool {
        self.waiting.load(Ordering::Relaxed)
    }

    /// Gives the next of those that wait this number; none where none waits. Before row `number` is published.
    pub fn place(&self, number: u64) -> Option<Edit> {
        let mut inside = self.lock();
        let next = inside.queue.pop_front();
        self.waiting
            .store(!inside.queue.is_empty(), Ordering::Relaxed);
        let (_, edit) = next?;
        inside.placed.insert(number, (edit.clone(), self.workers));
        Some(edit)
    }

    /// What a replica does at a heartbeat of this number, if anything; each replica asks once.
    pub fn at(&self, number: u64) -> Option<Edit> {
        let mut inside = self.lock();
        let (edit, left) = inside.placed.get_mut(&number)?;
        let edit = edit.clone();
        *left -= 1;
        if *left == 0 {
            inside.placed.remove(&number);
        }
        Some(edit)
    }

    pub fn close(&self) {
        let mut inside = self.lock();
        inside.closed = true;
        inside.queue.clear();
    }

    /// What nobody will make any more is dropped.
    pub fn forget(&self) {
        self.close();
        self.lock().placed.clear();
    }

    fn lock(&self) -> MutexGuard<'_, Inside> {
        // What a panicking thread has left is as whole as any.
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
