//! The state of a whole run, taken out of its workers and put into those of the next.
//!
//! Each worker gives its own part, between two bursts or before `ON_STOP`. While a run goes on its parts must belong
//! together: then workers wait for one another before and behind that, so that no packet falls between two parts.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use millrace_state::Content;

use super::stage::Stage;
use crate::module::{Entry, Instance, Keeping, ModuleError};
use crate::runner::Timers;
use crate::share::Share;

/// How long a worker waits for the others before it goes on without them, and nothing is taken.
const PATIENCE: Duration = Duration::from_secs(2);

/// What a worker has of an element.
#[derive(Clone, Debug, Default)]
pub struct StagePart {
    /// its name
    pub name: String,
    /// since when its timers run, ns, and how often the moment of each has come
    pub timers: (u64, Vec<u64>),
    /// the content of each object, in the module's order; none of one that has nothing to keep
    pub contents: Vec<Option<Content>>,
    /// of each object: elements that held something when packets began
    pub before: Vec<Vec<(Vec<u8>, Vec<u8>)>>,
    /// no object with state is missing: there is nothing to begin
    pub whole: bool,
}

/// What a worker has.
#[derive(Clone, Debug, Default)]
pub struct Part {
    /// ns since the epoch: the latest time that its packets have seen
    pub time: u64,
    /// packets that it has had, in all runs
    pub packets: u64,
    /// its elements
    pub stages: Vec<StagePart>,
    /// which of the workers' parts it was: what all share is as the last one has it
    pub order: u64,
}

#[derive(Default)]
struct Inside {
    /// as they are while the run goes on
    now: Vec<Option<Result<Part, ModuleError>>>,
    /// as they were at its end
    last: Vec<Option<Result<Part, ModuleError>>>,
    /// workers that wait for the others
    waiting: usize,
    /// how often all have met
    met: u64,
    /// somebody has not come
    missed: bool,
    /// parts so far
    given: u64,
}

impl Inside {
    fn ordered(&mut self, part: Result<Part, ModuleError>) -> Result<Part, ModuleError> {
        self.given += 1;
        let order = self.given;
        part.map(|part| Part { order, ..part })
    }
}

/// The state that a run takes up and leaves.
#[derive(Default)]
pub struct Keep {
    /// what each worker takes up; empty: nothing
    pub begin: Vec<Part>,
    inside: Mutex<Inside>,
    changed: Condvar,
}

impl Keep {
    /// For a run that takes this up, a part a worker.
    #[must_use]
    pub fn new(begin: Vec<Part>) -> Self {
        Self {
            begin,
            ..Self::default()
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inside> {
        // What a panicking thread has left is as whole as any.
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Forgets what was taken while the run goes on, so that it can be taken again.
    pub fn again(&self) {
        let mut inside = self.lock();
        (inside.missed, inside.waiting) = (false, 0);
        inside.now.clear();
    }

    /// The parts of all workers as they are now, once all have given theirs; none where one has not within so long.
    ///
    /// # Errors
    /// What a worker has could not be taken.
    pub fn collect(
        &self,
        workers: usize,
        patience: Duration,
    ) -> Option<Result<Vec<Part>, ModuleError>> {
        let deadline = Instant::now().checked_add(patience)?;
        let mut inside = self.lock();
        while !inside.missed && inside.now.iter().flatten().count() < workers {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                inside.missed = true;
                return None;
            }
            let waited = self.changed.wait_timeout(inside, left);
            inside = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        match inside.missed {
            true => None,
            false => Some(
                std::mem::take(&mut inside.now)
                    .into_iter()
                    .flatten()
                    .collect(),
            ),
        }
    }

    /// The parts of all workers as they were before `ON_STOP`; none where a worker has died.
    ///
    /// # Errors
    /// What a worker has could not be taken.
    pub fn last(&self, workers: usize) -> Option<Result<Vec<Part>, ModuleError>> {
        let last = std::mem::take(&mut self.lock().last);
        let there = last.iter().flatten().count() == workers;
        there.then(|| last.into_iter().flatten().collect())
    }

    /// A worker's part as it is now.
    pub(super) fn give(&self, worker: usize, part: Result<Part, ModuleError>) {
        let mut inside = self.lock();
        let part = inside.ordered(part);
        put(&mut inside.now, worker, part);
        self.changed.notify_all();
    }

    /// A worker's part at the end.
    pub(super) fn end(&self, worker: usize, part: Result<Part, ModuleError>) {
        let mut inside = self.lock();
        let part = inside.ordered(part);
        put(&mut inside.last, worker, part);
    }

    /// Waits until all workers are here; whether they are.
    pub(super) fn meet(&self, workers: usize) -> bool {
        let deadline = Instant::now() + PATIENCE;
        let mut inside = self.lock();
        let met = inside.met;
        inside.waiting += 1;
        if inside.waiting == workers && !inside.missed {
            inside.waiting = 0;
            inside.met += 1;
            self.changed.notify_all();
            return true;
        }
        while inside.met == met && !inside.missed {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                inside.missed = true;
                self.changed.notify_all();
                return false;
            }
            let waited = self.changed.wait_timeout(inside, left);
            inside = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        !inside.missed
    }
}

fn put(
    parts: &mut Vec<Option<Result<Part, ModuleError>>>,
    worker: usize,
    part: Result<Part, ModuleError>,
) {
    if parts.len() <= worker {
        parts.resize_with(worker + 1, || None);
    }
    if let Some(place) = parts.get_mut(worker) {
        *place = Some(part);
    }
}

impl StagePart {
    /// What an instance has of the element of this name.
    ///
    /// # Errors
    /// An object cannot be kept.
    pub(super) fn of(
        (name, shares): (&str, &[Share]),
        instance: &mut Instance,
        timers: (u64, Vec<u64>),
        now: u64,
    ) -> Result<Self, ModuleError> {
        let mut part = Self {
            name: name.to_owned(),
            timers,
            whole: true,
            ..Self::default()
        };
        for object in 0..instance.module().objects().len() {
            part.contents.push(match instance.module().keeping(object) {
                Keeping::Nothing => None,
                _ => Some(instance.save(object, now)?),
            });
            let share = shares.get(object);
            part.before
                .push(share.map_or_else(Vec::new, |s| s.before.all()));
        }
        Ok(part)
    }
}

impl Stage {
    /// What this worker has of it.
    ///
    /// # Errors
    /// An object cannot be kept.
    pub(super) fn part(&mut self, now: u64) -> Result<StagePart, ModuleError> {
        let name = self.life.name.clone();
        let timers = match self.replica() {
            Some(replica) => replica.timers().past(),
            None => self.timers.past(),
        };
        let shares = self.shares.clone();
        match self.instance() {
            Some(instance) => StagePart::of((&name, &shares), instance, timers, now),
            None => Ok(StagePart {
                name,
                timers,
                whole: true,
                ..StagePart::default()
            }),
        }
    }

    /// Takes up what a worker had of it in another run, with all times earlier by `shift`; `entries` are set after that, as
    /// `ON_START` makes them in a run that begins: it may fill in what they leave open (an interface's address).
    ///
    /// # Errors
    /// An object cannot hold what it had.
    pub(super) fn resume(
        &mut self,
        part: &StagePart,
        entries: &[Entry],
        now: u64,
        shift: u64,
    ) -> Result<(), ModuleError> {
        if !part.whole || !entries.is_empty() {
            self.start(now);
        }
        let shares = self.shares.clone();
        let Some(instance) = self.instance() else {
            return Ok(());
        };
        let first = instance.worker() == 0;
        let mine = |instance: &crate::module::Instance, object| {
            first || !instance.module().is_shared(object)
        };
        let mut named = Vec::with_capacity(entries.len());
        for entry in entries {
            let made = match mine(instance, entry.object) {
                true => instance.get(entry.object, &entry.key, now).ok().flatten(),
                false => None,
            };
            named.push(made.unwrap_or_else(|| entry.value.clone()));
        }
        if part.whole {
            // It began in the run before; what it told then is not told again.
            instance.drain(drop);
        }
        let mut loaded = Vec::new();
        for (object, content) in part.contents.iter().enumerate() {
            let Some(content) = content.as_ref() else {
                continue;
            };
            if mine(instance, object) {
                instance.load(object, content, now, shift)?;
                loaded.push(object);
            }
            if let (Some(share), Some(before)) = (shares.get(object), part.before.get(object)) {
                share.before.clear();
                for (key, value) in before {
                    share.before.set(key, value);
                }
            }
        }
        // What is named now counts, after what there was.
        let named = entries.iter().zip(&named);
        for (entry, value) in named.filter(|(e, _)| loaded.contains(&e.object)) {
            instance.set(entry.object, &entry.key, value, now)?;
        }
        let periods = instance.module().timers().to_vec();
        let (start, past) = &part.timers;
        // A replica's are those of its group.
        if self.replica().is_none() {
            self.timers = Timers::resumed(&periods, start.saturating_sub(shift), past, now);
        }
        if let Some((mixed, _)) = self.mixed_mut() {
            mixed.resume(part, now, shift)?;
        }
        self.begun = true;
        self.resumed = true;
        // What it has counted was another run's.
        self.alarms = self.alarms_fired();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_there_once_all_workers_have_met() {
        let keep = Keep::default();
        keep.again();
        std::thread::scope(|scope| {
            for worker in 0..3 {
                let keep = &keep;
                scope.spawn(move || {
                    assert!(keep.meet(3));
                    keep.give(
                        worker,
                        Ok(Part {
                            packets: worker as u64,
                            ..Part::default()
                        }),
                    );
                    assert!(keep.meet(3));
                });
            }
            let parts = keep.collect(3, Duration::from_secs(60)).unwrap().unwrap();
            let packets: Vec<_> = parts.iter().map(|p| p.packets).collect();
            assert_eq!(packets, [0, 1, 2]);
        });
        keep.end(0, Ok(Part::default()));
        assert!(keep.last(2).is_none());
    }

    #[test]
    fn a_worker_that_does_not_come_is_not_waited_for() {
        let keep = Keep::default();
        keep.again();
        assert!(keep.collect(2, Duration::from_millis(5)).is_none());
        // Who comes after that goes on at once.
        assert!(!keep.meet(2));
    }
}
