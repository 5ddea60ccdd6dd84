//! The entries of a bucket on their way, and what was moved so far.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use super::{Classes, MoveError, Moved, What};
use crate::module::Stamped;
use crate::moved::{Entries, Full};

/// How far a move is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Phase {
    /// the worker looks for the entries; packets go on
    Looking,
    /// packets are held, and what was received before is worked on
    Draining,
    /// who gives something up takes the entries out
    Taking,
    /// who gets something puts them in
    Putting,
    /// they go back to where they were
    Back,
    /// the class has its new worker, and devices bring it there
    Settling,
}

/// An entry where all go, and the workers between which it goes.
struct Going {
    from: usize,
    to: usize,
    entry: (usize, Stamped),
}

/// What has become of the entries of a move.
pub(super) struct State {
    pub phase: Phase,
    /// by worker: it has done its part of the phase
    done: Vec<bool>,
    /// those of one class
    one: Entries,
    /// those of all
    going: Vec<Going>,
    full: bool,
    /// the new worker has the entries in hand
    in_hand: bool,
    /// it was given up from outside
    asked: bool,
    /// entries that were put in
    pub entries: u64,
    /// entries that found no room where they were before either
    pub lost: u64,
}

/// Something for a worker to do, between two bursts.
#[derive(Debug)]
pub enum Task {
    /// begin to look for the entries of a bucket, and say when all places were looked at ([`Classes::looked`])
    Look(u32),
    /// take the entries of a bucket out ([`Classes::took`])
    Take(u32),
    /// take all entries out
    TakeAll,
    /// put these in ([`Classes::put`])
    Put(Entries),
    /// put these in, which come from another machine; what is still there of the bucket's leases goes before ([`Classes::put`])
    Bring {
        /// the bucket
        bucket: u32,
        /// its entries
        entries: Entries,
    },
    /// take out what was put in, and put these in, which were there before ([`Classes::back`]); of all buckets, or of one
    Back {
        /// what was there
        entries: Entries,
        /// all that is there goes before
        all: bool,
    },
}

impl State {
    pub fn new(phase: Phase, workers: usize) -> Self {
        Self {
            phase,
            done: vec![false; workers],
            one: Arc::default(),
            going: Vec::new(),
            full: false,
            in_hand: false,
            asked: false,
            entries: 0,
            lost: 0,
        }
    }

    pub fn enter(&mut self, phase: Phase) {
        self.phase = phase;
        self.in_hand = false;
        self.done.fill(false);
    }

    /// Whether entries are out of their worker.
    pub fn is_out(&self) -> bool {
        matches!(self.phase, Phase::Putting | Phase::Back)
            || self.phase == Phase::Taking && self.done.contains(&true)
    }

    /// Entries of one class are on their way.
    pub fn brings(&mut self, entries: Vec<(usize, Stamped)>) {
        self.one = Arc::new(entries);
    }

    /// Entries that leave for another machine.
    pub fn leaves(&mut self) -> Vec<(usize, Stamped)> {
        let one = std::mem::take(&mut self.one);
        Arc::try_unwrap(one).unwrap_or_else(|one| (*one).clone())
    }

    fn of(&self, wanted: impl Fn(&Going) -> bool) -> Entries {
        let going = self.going.iter().filter(|g| wanted(g));
        Arc::new(going.map(|g| g.entry.clone()).collect())
    }

    /// How many there are, without numbers that nobody has leased.
    fn count(&self) -> u64 {
        let all = self.one.iter().chain(self.going.iter().map(|g| &g.entry));
        all.filter(|(_, entry)| !entry.rest.free).count() as u64
    }
}

impl Classes {
    /// What a worker is to do now; none where it is not its turn.
    pub fn task(&self, worker: usize) -> Option<Task> {
        let mut inside = self.lock();
        let moving = inside.moving.as_mut()?;
        let state = &mut moving.state;
        if state.done.get(worker).copied().unwrap_or(true) {
            return None;
        }
        match (&moving.what, state.phase) {
            (What::Out { class, from }, phase) if *from == worker => match phase {
                Phase::Looking | Phase::Draining => Some(Task::Look(u32::from(*class))),
                Phase::Taking => Some(Task::Take(u32::from(*class))),
                Phase::Putting | Phase::Back | Phase::Settling => None,
            },
            (What::In { class, to }, Phase::Putting) if *to == worker => Some(Task::Bring {
                bucket: u32::from(*class),
                entries: state.one.clone(),
            }),
            (What::Out { .. } | What::In { .. }, _) => None,
            (What::One { class, from, .. }, phase) if *from == worker => match phase {
                // What is put in until nobody has packets of it is looked at, too.
                Phase::Looking | Phase::Draining => Some(Task::Look(u32::from(*class))),
                Phase::Taking => Some(Task::Take(u32::from(*class))),
                Phase::Back => Some(Task::Back {
                    entries: state.one.clone(),
                    all: false,
                }),
                Phase::Putting | Phase::Settling => None,
            },
            (What::One { to, .. }, Phase::Putting) if *to == worker => {
                state.in_hand = true;
                Some(Task::Put(state.one.clone()))
            }
            (What::One { .. }, _) => None,
            (What::All(_), Phase::Taking) => Some(Task::TakeAll),
            (What::All(_), Phase::Putting) => Some(Task::Put(state.of(|g| g.to == worker))),
            (What::All(_), Phase::Back) => Some(Task::Back {
                entries: state.of(|g| g.from == worker),
                all: true,
            }),
            (What::All(_), Phase::Looking | Phase::Draining | Phase::Settling) => None,
        }
    }

    /// A worker has looked at all places for the entries of the bucket that moves: from now on its packets are held.
    pub fn looked(&self) {
        let mut inside = self.lock();
        let Some(moving) = inside.moving.as_mut() else {
            return;
        };
        if moving.state.phase == Phase::Looking {
            moving.began = Instant::now();
            moving.state.enter(Phase::Draining);
            self.announce(&inside);
        }
    }

    /// A worker has taken these entries out.
    pub fn took(&self, worker: usize, entries: Vec<(usize, Stamped)>) {
        let mut inside = self.lock();
        let Some(moving) = inside.moving.as_mut() else {
            return;
        };
        let state = &mut moving.state;
        match &moving.what {
            What::One { .. } => {
                state.brings(entries);
                state.enter(Phase::Putting);
            }
            What::Out { .. } => {
                state.brings(entries);
                state.entries = state.count();
                self.pass_on(&mut inside);
                return;
            }
            What::In { .. } => return,
            What::All(drawn) => {
                let table = self.table();
                let going = entries.into_iter().map(|entry| {
                    let bucket = drawn.buckets.entry(entry.0, &entry.1.key).unwrap_or(0);
                    let to = table.get(bucket as usize).copied().unwrap_or(0);
                    Going {
                        from: worker,
                        to,
                        entry,
                    }
                });
                state.going.extend(going);
                if let Some(done) = state.done.get_mut(worker) {
                    *done = true;
                }
                if state.done.iter().all(|d| *d) {
                    state.going.sort_by_key(|g| g.entry.1.rest.turn());
                    state.enter(Phase::Putting);
                }
            }
        }
        self.announce(&inside);
    }

    /// A worker has put entries in, or has no room for all of them and has put in none.
    pub fn put(&self, worker: usize, put: Result<(), Full>) {
        let mut inside = self.lock();
        let Some(moving) = inside.moving.as_mut() else {
            return;
        };
        let state = &mut moving.state;
        state.full |= put.is_err();
        let all = match moving.what {
            What::One { .. } | What::Out { .. } | What::In { .. } => true,
            What::All(_) => {
                if let Some(done) = state.done.get_mut(worker) {
                    *done = true;
                }
                state.done.iter().all(|d| *d)
            }
        };
        match (all, state.full) {
            (false, _) => {}
            // The other machine has them.
            (true, true) if matches!(moving.what, What::In { .. }) => {
                self.end(&mut inside, Err(MoveError::Full));
            }
            (true, true) => {
                state.enter(Phase::Back);
                self.announce(&inside);
            }
            (true, false) => {
                state.entries = state.count();
                self.pass_on(&mut inside);
            }
        }
    }

    /// A worker has its entries back, but for some that found no room.
    pub fn back(&self, worker: usize, lost: u64) {
        let mut inside = self.lock();
        let Some(moving) = inside.moving.as_mut() else {
            return;
        };
        let state = &mut moving.state;
        state.lost += lost;
        if let Some(done) = state.done.get_mut(worker) {
            *done = true;
        }
        let all = match moving.what {
            What::One { .. } | What::Out { .. } | What::In { .. } => true,
            What::All(_) => state.done.iter().all(|d| *d),
        };
        if all {
            let why = if state.asked {
                MoveError::Asked
            } else {
                MoveError::Full
            };
            self.end(&mut inside, Err(why));
        }
    }

    /// Somebody wants the state of all workers: a bucket whose entries are on their way goes back, unless its new worker is at them.
    /// True where there is nothing on its way.
    pub fn recall(&self) -> bool {
        let mut inside = self.lock();
        let Some(moving) = inside.moving.as_mut() else {
            return true;
        };
        if moving.moved.is_some() {
            // The new worker has all of it; only packets wait.
            return true;
        }
        if !moving.state.is_out() {
            self.end(&mut inside, Err(MoveError::Asked));
            return true;
        }
        // What the new worker has in hand is with it in a moment; back as well, it would be at both.
        let waits = moving.state.phase == Phase::Putting && !moving.state.in_hand;
        if matches!(moving.what, What::One { .. }) && waits {
            moving.state.asked = true;
            moving.state.enter(Phase::Back);
            self.announce(&inside);
        }
        false
    }
}

/// The least moves by which the first `count` workers have all classes of a table, each its part of them.
pub(super) fn spread(table: &[usize], count: usize) -> Vec<(usize, usize)> {
    let mut has = vec![0_usize; count.max(1)];
    for worker in table {
        if let Some(has) = has.get_mut(*worker) {
            *has += 1;
        }
    }
    let (part, more) = (table.len() / has.len(), table.len() % has.len());
    // Who has most keeps one more, so that the fewest move.
    let mut order: Vec<usize> = (0..has.len()).collect();
    order.sort_by_key(|w| std::cmp::Reverse(has.get(*w).copied().unwrap_or(0)));
    let mut most = vec![part; has.len()];
    for worker in order.into_iter().take(more) {
        if let Some(most) = most.get_mut(worker) {
            *most += 1;
        }
    }
    let mut moves = Vec::new();
    let mut kept = vec![0_usize; has.len()];
    let mut free: Vec<usize> = Vec::new();
    for (worker, most) in most.iter().enumerate() {
        let lacks = most.saturating_sub(has.get(worker).copied().unwrap_or(0));
        free.extend(std::iter::repeat_n(worker, lacks));
    }
    for (class, worker) in table.iter().enumerate() {
        let keeps = kept.get_mut(*worker).zip(most.get(*worker));
        match keeps {
            Some((kept, most)) if *kept < *most => *kept += 1,
            _ => moves.extend(free.pop().map(|to| (class, to))),
        }
    }
    moves
}

/// What was moved so far.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, serde::Serialize)]
pub struct Counts {
    /// classes, or buckets, that have another worker than before
    pub moves: u64,
    /// changes of the key of the hash
    pub keys: u64,
    /// moves and changes of the key after which all was as before
    pub refused: u64,
    /// entries of state that went along
    pub entries: u64,
    /// entries that found room nowhere
    pub lost: u64,
    /// time that packets of what moved waited at most, all moves together, ns
    pub waited_ns: u64,
    /// the longest of these
    pub longest_ns: u64,
}

#[derive(Default)]
pub(super) struct Counters {
    moves: AtomicU64,
    keys: AtomicU64,
    refused: AtomicU64,
    entries: AtomicU64,
    lost: AtomicU64,
    waited: AtomicU64,
    longest: AtomicU64,
}

impl Counters {
    pub fn ended(&self, ended: &Result<Moved, MoveError>, lost: Option<u64>) {
        let add = |to: &AtomicU64, n: u64| to.fetch_add(n, Ordering::Relaxed);
        add(&self.lost, lost.unwrap_or(0));
        match ended {
            Ok(moved) => {
                let held = moved.held.as_nanos().min(u128::from(u64::MAX)) as u64;
                if moved.from == usize::MAX || moved.to == usize::MAX {
                    // Between machines: counted there.
                    return;
                }
                add(
                    if moved.from == moved.to {
                        &self.keys
                    } else {
                        &self.moves
                    },
                    1,
                );
                add(&self.entries, moved.entries);
                add(&self.waited, held);
                self.longest.fetch_max(held, Ordering::Relaxed);
            }
            Err(_) => {
                add(&self.refused, 1);
            }
        }
    }

    pub fn seen(&self) -> Counts {
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Counts {
            moves: load(&self.moves),
            keys: load(&self.keys),
            refused: load(&self.refused),
            entries: load(&self.entries),
            lost: load(&self.lost),
            waited_ns: load(&self.waited),
            longest_ns: load(&self.longest),
        }
    }
}
