//! Insertions that found a worker's part of an object full while others had room: on one core they would have
//! succeeded. Workers of live ports say now and then what their parts hold, once any part has been full.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::chain::Link;
use super::stage::Stage;

/// Counting entries looks at all of them: not more often than this.
const SELDOM: Duration = Duration::from_millis(200);

/// A divided object.
struct Divided {
    stage: usize,
    object: usize,
    whole: u64,
    name: &'static str,
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
    /// For these functions on so many workers.
    pub fn new(chain: &[Link], workers: usize) -> Self {
        let mut objects = Vec::new();
        for (stage, link) in chain.iter().enumerate().filter(|_| workers > 1) {
            let shares = link.objects().iter().zip(&link.shares);
            for (object, (info, share)) in shares.enumerate() {
                let Some(whole) = share.bound(info.kind) else {
                    continue;
                };
                objects.push(Divided {
                    stage,
                    object,
                    whole,
                    name: info.kind.when_full().name(),
                });
            }
        }
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
            let stage = stages.get_mut(divided.stage);
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
            let stage = stages.get_mut(divided.stage);
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
            if now > before && all < divided.whole {
                *said.relaxations.entry(divided.name.to_owned()).or_default() += now - before;
            }
        }
        seen.full = full;
    }

    /// What was counted so far, by name.
    pub fn relaxations(&self) -> BTreeMap<String, u64> {
        let said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        said.relaxations.clone()
    }
}
