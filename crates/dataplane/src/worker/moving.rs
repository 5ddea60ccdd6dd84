//! A worker's part in moves of buckets: it looks for their entries between its packets, takes them out, and puts in what it gets.
//!
//! What is to be done stands in [`Classes`], one step after another; without a move a turn costs one load. A bucket's entries are looked
//! for a bounded number of places after each burst, so that other packets do not wait; taking them out and putting them in is done at once,
//! which for a thousand entries takes a fraction of a millisecond. Where many buckets are to go ([`Classes::foresee`]) it looks for the entries of all
//! of them in one walk over its tables.

use std::sync::Arc;

use millrace_steer::buckets::Numbered;
use millrace_steer::hybrid::Key;

use crate::classes::away::Whose;
use crate::classes::{Classes, Task};
use crate::copies::Copies;
use crate::module::{Instance, Module};
use crate::moved::{self, Contents};
use crate::replica::Listing;
use crate::share::Share;
use crate::worker::stage::Stage;

/// What all workers have in common of moves.
#[derive(Clone)]
pub struct Moves {
    /// which worker has which bucket
    pub classes: Arc<Classes>,
    /// what goes with a bucket
    pub contents: Contents,
    /// the code of the function that this is of
    pub module: Arc<Module>,
    /// other machines that keep copies of its buckets, where there are some
    pub copies: Option<Arc<dyn Copies>>,
}

/// One worker's part.
pub struct Mover {
    moves: Moves,
    worker: usize,
    /// the step of the classes that was looked at last
    step: u64,
    listing: Listing,
    /// the bucket that moves now
    looks: Option<u32>,
    /// buckets that will move soon, and until when it looks for what they have, ns
    foreseen: (Arc<[u16]>, u64),
}

/// How long buckets that are foreseen are looked for, ns: what comes into tables is looked at meanwhile.
const SOON: u64 = 10_000_000_000;

impl Mover {
    /// Of worker `worker`.
    pub fn new(moves: &Moves, worker: usize) -> Self {
        Self {
            moves: moves.clone(),
            worker,
            step: 0,
            listing: Listing::default(),
            looks: None,
            foreseen: (Arc::default(), 0),
        }
    }

    /// Whether there may be something for it to do; mostly not, which costs one load.
    #[inline]
    pub fn is_wanted(&self) -> bool {
        self.listing.any() || self.moves.classes.has_changed(self.step)
    }

    /// The function whose buckets these are, in a chain that may have changed.
    pub fn of<'a>(&self, stages: &'a mut [Stage]) -> Option<(&'a mut Instance, &'a [Share])> {
        let mut held = stages.iter_mut().filter_map(Stage::held);
        held.find(|(instance, _)| std::ptr::eq(instance.module(), Arc::as_ptr(&self.moves.module)))
    }

    /// The function is not there any more: goes on with the version of it that has its place, or has nothing move any more.
    #[cold]
    pub fn lacks(&mut self, stages: &mut [Stage]) {
        self.listing = Listing::default();
        self.looks = None;
        if let Some(next) = self.moves.classes.expected() {
            self.moves.module = next.module.clone();
            self.moves.contents = next.contents.clone();
            if self.of(stages).is_some() {
                // It looks at this step once more.
                self.step = 0;
                return;
            }
        }
        self.step = self.moves.classes.step();
        self.moves.classes.changes();
    }

    /// Notes that packets of a class came.
    pub fn sampled(&self, class: u16, packets: u64) {
        self.moves.classes.sampled(usize::from(class), packets);
    }

    /// Does what there is to do, between two bursts, at `now`, ns.
    #[cold]
    pub fn act(&mut self, instance: &mut Instance, shares: &[Share], now: u64) {
        // Before the task, so that a step that comes meanwhile is looked at.
        self.step = self.moves.classes.step();
        let task = self.moves.classes.task(self.worker);
        let looks = match &task {
            Some(Task::Look(bucket) | Task::Take(bucket)) => Some(*bucket),
            _ => None,
        };
        let classes = self.moves.classes.clone();
        if let Some(buckets) = classes.buckets() {
            if !Arc::ptr_eq(&buckets, &self.moves.contents.buckets) {
                // Under another key entries have other buckets.
                self.listing = Listing::default();
            }
            self.moves.contents.buckets = buckets;
        }
        self.foresee(instance, looks, now);
        let contents = &self.moves.contents;
        match task {
            None => {
                if self.listing.any() {
                    contents.step(instance, &mut self.listing);
                }
            }
            Some(Task::Look(bucket)) => {
                contents.begin(instance, &mut self.listing, [bucket]);
                contents.step(instance, &mut self.listing);
                if contents.looked(&self.listing, bucket) {
                    classes.looked();
                }
            }
            Some(Task::Take(bucket)) => {
                let of = (bucket, shares);
                let entries = contents.take(instance, &mut self.listing, of);
                classes.took(self.worker, entries);
            }
            Some(Task::TakeAll) => {
                classes.took(self.worker, contents.take_all(instance, shares));
            }
            Some(Task::Put(entries)) => {
                classes.put(self.worker, contents.put(instance, &entries, now));
            }
            Some(Task::Bring { bucket, entries }) => {
                contents.take_old_leases(instance, bucket);
                classes.put(self.worker, contents.put(instance, &entries, now));
            }
            Some(Task::Back { entries, all }) => {
                if all {
                    contents.take_all(instance, shares);
                }
                classes.back(self.worker, moved::put(instance, &entries, now));
            }
        }
        self.looks = looks;
    }

    /// Looks for what buckets have that move now or soon, and for no others.
    fn foresee(&mut self, instance: &mut Instance, looks: Option<u32>, now: u64) {
        let foreseen = self.moves.classes.foreseen();
        let new = !Arc::ptr_eq(&foreseen, &self.foreseen.0);
        if new {
            self.foreseen = (foreseen, now.saturating_add(SOON));
            let own =
                |class: &&u16| self.moves.classes.whose(**class) == Whose::Worker(self.worker);
            let own = self.foreseen.0.iter().filter(own).map(|c| u32::from(*c));
            let own: Vec<u32> = own.collect();
            self.moves.contents.begin(instance, &mut self.listing, own);
        }
        let over = now >= self.foreseen.1;
        if new || over || looks != self.looks {
            // What was given up, or has waited for too long.
            let soon = |key: &Key| {
                let class = u16::try_from(key.0).ok();
                let soon = class.is_some_and(|c| self.foreseen.0.binary_search(&c).is_ok());
                soon && !over || looks.map(Numbered::key) == Some(*key)
            };
            let old: Vec<Key> = self.listing.keys().filter(|key| !soon(key)).collect();
            old.into_iter().for_each(|key| self.listing.forget(key));
        }
    }

    /// Somebody wants the state of all workers, or this one ends: nothing of it is on its way behind this, as long as the other worker is there.
    pub fn settle(&mut self, instance: &mut Instance, shares: &[Share], now: u64) {
        for _ in 0..SETTLES {
            self.act(instance, shares, now);
            if self.moves.classes.recall() {
                return;
            }
            std::thread::yield_now();
        }
    }
}

/// How often a worker looks whether others have done their part.
const SETTLES: u32 = 100_000;
