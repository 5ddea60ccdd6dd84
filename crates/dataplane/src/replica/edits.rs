//! Edits of replicated state from outside, and looks at it: each has a row's number, at which all replicas make it.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::module::Instance;

/// What is done to a replica's state.
pub type Change = dyn Fn(&mut Instance, At) + Send + Sync;

/// Where in the order of packets an edit has its place.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct At {
    /// the time of its row, ns
    pub time: u64,
    /// packets before it, those of earlier runs included: a later one's number is not below that
    pub packets: u64,
}

/// What an edit does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Effect {
    /// It changes state.
    State,
    /// It changes settings, which rows depend on: the sequencer's own instance makes it, too.
    Settings,
    /// It changes nothing: the state is taken out. Where only heavy keys are replicated their owners have them then.
    Kept,
}

/// A change of state from outside.
#[derive(Clone)]
pub struct Edit {
    /// What is done to each replica's state, at its row. It is called once for each worker, with the worker's
    /// own instance, and does the same to equal states.
    pub make: Arc<Change>,
    /// what that changes
    pub effect: Effect,
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
    placed: BTreeMap<u64, (Edit, At, usize)>,
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

    /// Gives the next of those that wait this number and place; none where none waits. Before row `number` is published.
    pub fn place(&self, number: u64, at: At) -> Option<Edit> {
        let mut inside = self.lock();
        let next = inside.queue.pop_front();
        self.waiting
            .store(!inside.queue.is_empty(), Ordering::Relaxed);
        let (_, edit) = next?;
        inside
            .placed
            .insert(number, (edit.clone(), at, self.workers));
        Some(edit)
    }

    /// What a replica does at a heartbeat of this number, if anything; each replica asks once.
    pub fn at(&self, number: u64) -> Option<(Edit, At)> {
        let mut inside = self.lock();
        let (edit, at, left) = inside.placed.get_mut(&number)?;
        let found = (edit.clone(), *at);
        *left -= 1;
        if *left == 0 {
            inside.placed.remove(&number);
        }
        Some(found)
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
