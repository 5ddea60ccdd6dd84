//! A worker's part in moves of buckets: it looks for their entries between its packets, takes them out, and puts in what it gets.
//!
//! What is to be done stands in [`Classes`], one step after another; without a move a turn costs one load. A bucket's entries are looked
//! for a bounded number of places after each burst, so that other packets do not wait; taking them out and putting them in is done at once,
//! which for a thousand entries takes a fraction of a millisecond.

use std::sync::Arc;

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
    /// the bucket whose entries it looks for
    looks: Option<u32>,
}

impl Mover {
    /// Of worker `worker`.
    pub fn new(moves: &Moves, worker: usize) -> Self {
        Self {
            moves: moves.clone(),
            worker,
            step: 0,
            listing: Listing::default(),
            looks: None,
        }
    }

    /// Whether there may be something for it to do; mostly not, which costs one load.
    #[inline]
    pub fn is_wanted(&self) -> bool {
        self.looks.is_some() || self.moves.classes.has_changed(self.step)
    }

    /// The function whose buckets these are, in a chain that may have changed.
    pub fn of<'a>(&self, stages: &'a mut [Stage]) -> Option<(&'a mut Instance, &'a [Share])> {
        let mut held = stages.iter_mut().filter_map(Stage::held);
        held.find(|(instance, _)| std::ptr::eq(instance.module(), Arc::as_ptr(&self.moves.module)))
    }

    /// The function is not there any more.
    #[cold]
    pub fn lacks(&mut self) {
        self.step = self.moves.classes.step();
        self.looks = None;
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
        let begins = matches!(task, Some(Task::Look(_))) && looks != self.looks;
        if looks != self.looks {
            // Another one was given up.
            self.listing = Listing::default();
        }
        let classes = self.moves.classes.clone();
        if let Some(buckets) = classes.buckets() {
            self.moves.contents.buckets = buckets;
        }
        let contents = &self.moves.contents;
        match task {
            None => {}
            Some(Task::Look(bucket)) => {
                if begins {
                    contents.begin(instance, &mut self.listing, bucket);
                }
                if contents.step(instance, &mut self.listing) {
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
        self.looks = match looks {
            Some(bucket) if self.listing.any() => Some(bucket),
            _ => None,
        };
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
