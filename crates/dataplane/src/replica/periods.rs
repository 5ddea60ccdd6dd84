//! Periods of the choice of heavy keys, where several threads play one sequencer.
//!
//! Each thread counts its own packets and tells at the end of a period. The last one to do so chooses, and numbers the moves behind all
//! packets of the period and before those of the next; the others wait. A thread that has no packets any more is waited for no longer.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use millrace_steer::hybrid::Key;

use super::batch::Turn;

/// What a thread has counted in a period.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Counted {
    /// packets of sharded keys by owner
    pub loads: Vec<u64>,
    /// sharded keys that may be heavy: owner, and packets among one of four
    pub sampled: Vec<(Key, u32, u32)>,
    /// packets of heavy keys
    pub replicated: Vec<(Key, u64)>,
}

impl Counted {
    fn add(&mut self, other: Self) {
        if self.loads.len() < other.loads.len() {
            self.loads.resize(other.loads.len(), 0);
        }
        let both = self.loads.iter_mut().zip(other.loads);
        both.for_each(|(sum, load)| *sum += load);
        self.sampled.extend(other.sampled);
        self.replicated.extend(other.replicated);
    }
}

/// Who has arrived at the end of the period.
#[derive(Debug, Default)]
pub(super) struct Periods {
    inside: Mutex<Inside>,
    /// how many are over
    over: Turn,
}

#[derive(Debug, Default)]
struct Inside {
    threads: usize,
    arrived: usize,
    /// one of them chooses
    choosing: bool,
    counted: Counted,
    heavy: Arc<[Key]>,
}

impl Periods {
    /// A thread begins, before any period ends.
    pub fn join(&self) {
        self.lock().threads += 1;
    }

    /// How many periods are over.
    #[inline]
    pub fn over(&self) -> u64 {
        self.over.0.load(Ordering::Acquire)
    }

    /// The heavy keys of the period.
    pub fn heavy(&self) -> Arc<[Key]> {
        self.lock().heavy.clone()
    }

    /// A thread has come to the end of the period; to the one that all have come to then, what all have counted, and it has to choose
    /// and call [`Self::next`].
    pub fn arrive(&self, counted: Counted) -> Option<Counted> {
        let mut inside = self.lock();
        inside.arrived += 1;
        inside.counted.add(counted);
        inside.complete()
    }

    /// The same of a thread that has no packets any more; `arrived`: the period whose end it came to last.
    pub fn leave(&self, counted: Counted, arrived: Option<u64>) -> Option<Counted> {
        let mut inside = self.lock();
        inside.threads -= 1;
        inside.arrived -= usize::from(arrived == Some(self.over()));
        inside.counted.add(counted);
        inside.complete()
    }

    /// The next period begins, with these heavy keys.
    pub fn next(&self, heavy: Vec<Key>) {
        let mut inside = self.lock();
        inside.heavy = heavy.into();
        inside.arrived = 0;
        inside.choosing = false;
        // Whoever leaves sees both.
        self.over.0.fetch_add(1, Ordering::Release);
    }

    fn lock(&self) -> MutexGuard<'_, Inside> {
        // What a panicking thread has left is as whole as any.
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inside {
    fn complete(&mut self) -> Option<Counted> {
        let all = self.threads > 0 && self.arrived == self.threads && !self.choosing;
        all.then(|| {
            self.choosing = true;
            std::mem::take(&mut self.counted)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(loads: &[u64], key: u128) -> Counted {
        Counted {
            loads: loads.to_vec(),
            sampled: vec![(Key(key), 0, 5)],
            replicated: Vec::new(),
        }
    }

    #[test]
    fn the_last_one_chooses_from_what_all_counted() {
        let periods = Periods::default();
        (0..3).for_each(|_| periods.join());
        assert_eq!(periods.arrive(counted(&[1, 0], 1)), None);
        assert_eq!(periods.arrive(counted(&[0, 2], 2)), None);
        let all = periods.arrive(counted(&[4], 3));
        let mut expected = counted(&[5, 2], 1);
        expected.sampled.extend([(Key(2), 0, 5), (Key(3), 0, 5)]);
        assert_eq!(all, Some(expected));
        assert_eq!((periods.over(), periods.heavy().len()), (0, 0));
        periods.next(vec![Key(2)]);
        assert_eq!((periods.over(), &*periods.heavy()), (1, &[Key(2)][..]));
    }

    #[test]
    fn one_that_leaves_meanwhile_does_not_choose_too() {
        let periods = Periods::default();
        (0..2).for_each(|_| periods.join());
        assert_eq!(periods.arrive(counted(&[1], 1)), None);
        assert!(periods.arrive(counted(&[1], 1)).is_some());
        assert_eq!(periods.leave(Counted::default(), Some(0)), None);
        periods.next(Vec::new());
        assert!(periods.arrive(Counted::default()).is_some());
    }

    #[test]
    fn nobody_waits_for_one_that_has_left() {
        let periods = Periods::default();
        (0..3).for_each(|_| periods.join());
        assert_eq!(periods.arrive(counted(&[1], 1)), None);
        // One that has not arrived, and one that has.
        assert_eq!(periods.leave(counted(&[1], 1), None), None);
        assert_eq!(
            periods.arrive(Counted::default()).map(|c| c.loads),
            Some(vec![2])
        );
        periods.next(Vec::new());
        assert_eq!(periods.arrive(counted(&[1], 1)), None);
        assert_eq!(periods.leave(Counted::default(), Some(1)), None);
        assert_eq!(
            periods.arrive(Counted::default()).map(|c| c.loads),
            Some(vec![1])
        );
        periods.next(Vec::new());
        // The last one: nobody is left who would want to know.
        assert_eq!(periods.leave(Counted::default(), Some(1)), None);
        assert_eq!(periods.over(), 2);
    }
}
