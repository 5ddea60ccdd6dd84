//! The bijection between the leases of both sides.
//!
//! Which free number an allocator returns is not observable; that a lease keeps it is. So as long as a lease
//! lives, the sequential side's number stands for one number of one worker, and that for it alone. A pair may
//! be replaced once the lease of one of its numbers has ended.

use std::collections::HashMap;

use crate::compare::Pair;
use crate::lane::Lane;

/// A number on the parallel side: object, worker, number.
type There = (usize, u32, u64);

/// Correspondence of leases.
#[derive(Default)]
pub struct Bijection {
    forth: HashMap<(usize, u64), Pair>,
    back: HashMap<There, Pair>,
    /// packets that differed only in leased numbers
    pub packets: u64,
    /// a number is one for all workers, of which now this one has it and now another
    pub moves: bool,
}

impl Bijection {
    /// Takes a pair that a packet showed.
    ///
    /// # Errors
    /// One of its numbers stands for another one whose lease is still the same.
    pub fn admit(
        &mut self,
        pair: &Pair,
        sequential: &mut Lane<'_>,
        parallel: &mut Lane<'_>,
        now: u64,
    ) -> Result<(), String> {
        let one = Pair {
            worker: self.of(pair.worker),
            ..pair.clone()
        };
        let pair = &one;
        let here = (pair.object, pair.sequential);
        let there = (pair.object, pair.worker, pair.parallel);
        if self.forth.get(&here) == Some(pair) && self.back.get(&there) == Some(pair) {
            return Ok(());
        }
        let lives = |lane: &mut Lane<'_>, worker: u32, number, value: &Vec<u8>| {
            lane.leased(worker, pair.object, number, now).as_ref() == Some(value)
        };
        if let Some(old) = self.forth.get(&here).filter(|old| *old != pair) {
            // The sequential number is leased to the new value now; the old partner must be free, or another's.
            if old.value == pair.value && lives(parallel, old.worker, old.parallel, &old.kept) {
                return Err(format!(
                    "{} of the sequential side is {} of worker {} and {} of worker {} at once",
                    pair.sequential, old.parallel, old.worker, pair.parallel, pair.worker
                ));
            }
            self.back.remove(&(old.object, old.worker, old.parallel));
        }
        if let Some(old) = self.back.get(&there).filter(|old| *old != pair) {
            if old.value == pair.value && lives(sequential, 0, old.sequential, &old.value) {
                return Err(format!(
                    "{} of worker {} is {} and {} of the sequential side at once",
                    pair.parallel, pair.worker, old.sequential, pair.sequential
                ));
            }
            self.forth.remove(&(old.object, old.sequential));
        }
        self.forth.insert(here, pair.clone());
        self.back.insert(there, pair.clone());
        Ok(())
    }

    fn of(&self, worker: u32) -> u32 {
        if self.moves { 0 } else { worker }
    }

    /// Counterpart of a number of the sequential side: the worker and its number.
    #[must_use]
    pub fn parallel(&self, object: usize, number: u64) -> Option<(u32, u64)> {
        let pair = self.forth.get(&(object, number))?;
        Some((pair.worker, pair.parallel))
    }

    /// The number of the sequential side that a worker's number stands for.
    #[must_use]
    pub fn sequential(&self, object: usize, worker: u32, number: u64) -> Option<u64> {
        let pair = self.back.get(&(object, self.of(worker), number))?;
        Some(pair.sequential)
    }
}
