//! Insertions that found a worker's part of an object full while others had room: on one core they would have
//! succeeded. Workers of live ports say now and then what their parts hold, those of a run over captures at the end of
//! each window, so that the same run counts the same. Entries are counted only once a part has been full, since counting
//! looks at all of them.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::chain::Link;
use super::stage::Stage;
use crate::runner::{Batch, Part};

/// Counting entries looks at all of them: not more often than this.
const SELDOM: Duration = Duration::from_millis(200);

/// A divided object.
struct Divided {
    /// the number in the run of its element ([`super::lives::Life`]), which another place of the chain does not change
    element: u64,
    object: usize,
    whole: u64,
    name: &'static str,
}

impl Divided {
    /// Those of these functions on this many workers.
    fn all(chain: &[Link], workers: usize) -> Vec<Self> {
        let mut all = Vec::new();
        for (element, link) in (0..).zip(chain).filter(|_| workers > 1) {
            let shares = link.objects().iter().zip(&link.shares);
            all.extend(shares.enumerate().filter_map(|(object, (info, share))| {
                Some(Self {
                    element,
                    object,
                    whole: share.bound(info.kind)?,
                    name: info.kind.when_full().name(),
                })
            }));
        }
        all
    }

    /// Its element; none where that has left the chain.
    fn of<'a>(&self, stages: &'a mut [Stage]) -> Option<&'a mut Stage> {
        stages.iter_mut().find(|s| s.life.id == self.element)
    }

    /// Decides over insertions that found a part full: they differ from one core where all parts together have room.
    /// What cannot be counted is taken to have room.
    fn settle(&self, full: u64, entries: Option<u64>, relaxations: &mut BTreeMap<String, u64>) {
        if full > 0 && entries.is_none_or(|entries| entries < self.whole) {
            *relaxations.entry(self.name.to_owned()).or_default() += full;
        }
    }
}

/// What the sequencer of a run over captures knows of the divided objects, from window to window.
pub struct Windows {
    /// each with the insertions that found a part full since entries were counted
    objects: Vec<(Divided, u64)>,
    /// counted so far, by name
    pub relaxations: BTreeMap<String, u64>,
}

impl Windows {
    /// For these functions on this many workers.
    pub fn new(chain: &[Link], workers: usize) -> Self {
        let objects = Divided::all(chain, workers).into_iter().map(|d| (d, 0));
        Self {
            objects: objects.collect(),
            relaxations: BTreeMap::new(),
        }
    }

    /// Takes what each worker says at the end of a window.
    pub fn add(&mut self, batches: &[Box<Batch>]) {
        for (at, (divided, full)) in self.objects.iter_mut().enumerate() {
            let parts = || batches.iter().filter_map(|b| b.parts.get(at));
            *full += parts().map(|p| p.full).sum::<u64>();
            if batches.iter().any(|b| b.count) {
                let entries = parts().map(|p| p.entries).sum::<Option<u64>>();
                divided.settle(std::mem::take(full), entries, &mut self.relaxations);
            }
        }
    }

    /// Whether entries are to be counted.
    pub fn counts(&self) -> bool {
        self.objects.iter().any(|(_, full)| *full > 0)
    }

    /// What is left at the end, where the objects of the only function have these entries.
    pub fn finish(&mut self, entries: impl Fn(usize) -> Option<u64>) {
        for (divided, full) in &mut self.objects {
            let entries = entries(divided.object);
            divided.settle(std::mem::take(full), entries, &mut self.relaxations);
        }
    }
}

/// What all workers have said.
#[derive(Default)]
struct Said {
    /// by worker and divided object: its entries when they were last counted
    entries: Vec<Vec<u64>>,
    relaxations: BTreeMap<String, u64>,
}

/// What is known of the divided objects, by all workers.
pub struct Pressure {
    objects: Vec<Divided>,
    /// a part has been full
    any: AtomicBool,
    said: Mutex<Said>,
}

/// What one worker has seen of its own parts.
#[derive(Default)]
pub struct Seen {
    full: Vec<u64>,
    last: Option<Instant>,
}

impl Seen {
    /// Insertions so far that found one of its parts full.
    pub fn full(&self) -> u64 {
        self.full.iter().sum()
    }
}

impl Pressure {
    /// For these functions on this many workers.
    pub fn new(chain: &[Link], workers: usize) -> Self {
        let objects = Divided::all(chain, workers);
        let none = vec![0; objects.len()];
        Self {
            any: AtomicBool::new(false),
            said: Mutex::new(Said {
                entries: vec![none; workers],
                relaxations: BTreeMap::new(),
            }),
            objects,
        }
    }

    /// In a run over captures, what a worker's parts have seen since it was asked last; their entries where they are
    /// to be counted.
    pub fn parts(&self, stages: &mut [Stage], seen: &mut Seen, now: u64, count: bool) -> Vec<Part> {
        if self.objects.is_empty() {
            return Vec::new();
        }
        seen.full.resize(self.objects.len(), 0);
        let each = self.objects.iter().zip(&mut seen.full);
        each.map(|(divided, seen)| {
            let mut stage = divided.of(stages);
            let full = stage.as_mut().and_then(|s| s.full(divided.object));
            let full = full.unwrap_or(0);
            Part {
                full: full.saturating_sub(std::mem::replace(seen, full)),
                entries: stage
                    .filter(|_| count)
                    .and_then(|s| s.count(divided.object, now)),
            }
        })
        .collect()
    }

    /// A worker looks at its parts; `now` is its functions' time, ns. At the `end` it looks at once.
    pub fn look(&self, worker: usize, stages: &mut [Stage], seen: &mut Seen, now: u64, end: bool) {
        if self.objects.is_empty() {
            return;
        }
        let soon = seen.last.is_some_and(|last| last.elapsed() < SELDOM);
        if soon && !end {
            return;
        }
        seen.full.resize(self.objects.len(), 0);
        let of = |divided: &Divided, stages: &mut [Stage]| {
            let stage = divided.of(stages);
            stage.and_then(|s| s.full(divided.object)).unwrap_or(0)
        };
        let full: Vec<_> = self.objects.iter().map(|d| of(d, stages)).collect();
        let more = full
            .iter()
            .zip(&seen.full)
            .any(|(now, before)| now > before);
        if more {
            self.any.store(true, Ordering::Relaxed);
        }
        if !self.any.load(Ordering::Relaxed) {
            return;
        }
        seen.last = Some(Instant::now());
        let count = |divided: &Divided, stages: &mut [Stage]| {
            let stage = divided.of(stages);
            stage
                .and_then(|s| s.count(divided.object, now))
                .unwrap_or(0)
        };
        let entries: Vec<_> = self.objects.iter().map(|d| count(d, stages)).collect();
        let mut said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(mine) = said.entries.get_mut(worker) {
            *mine = entries;
        }
        for (at, divided) in self.objects.iter().enumerate() {
            let (Some(now), Some(before)) = (full.get(at), seen.full.get(at)) else {
                continue;
            };
            let all = said.entries.iter().filter_map(|of| of.get(at)).sum::<u64>();
            let more = now.saturating_sub(*before);
            divided.settle(more, Some(all), &mut said.relaxations);
        }
        seen.full = full;
    }

    /// What was counted so far, by name.
    pub fn relaxations(&self) -> BTreeMap<String, u64> {
        let said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        said.relaxations.clone()
    }
}
