//! The function whose state the buckets are of, when it is replaced by another version of it.
//!
//! Whoever replaces it names the new one before workers change their chain ([`Classes::expect`]): a worker that does not find the old one any more
//! goes on with that one. With [`Classes::succeed`] the new one counts for everybody. Meanwhile nothing moves ([`Classes::still`]), and no
//! bucket is between machines ([`Classes::pause`]), so that no entries of the one come into the other.

use std::sync::{Arc, PoisonError};
use std::time::Instant;

use super::{Classes, MOST, MoveError};
use crate::module::Module;
use crate::moved::Contents;

/// A version of a function whose state goes with buckets.
pub struct Successor {
    /// its code
    pub module: Arc<Module>,
    /// what goes with a bucket
    pub contents: Contents,
    /// all by which two machines have to be equal beside the module's objects: the code, the steering with its keys
    pub parts: Vec<Vec<u8>>,
}

/// Which version of the function runs.
#[derive(Default)]
pub(super) struct Versions {
    /// the one that is about to run
    expected: Option<Arc<Successor>>,
    /// the one that runs; none: the first one
    runs: Option<Arc<Successor>>,
    /// how many have run before it
    pub generation: u64,
}

/// As long as it is there no bucket begins to go to another machine or to come from one.
pub struct Paused<'a>(&'a Classes);

impl Drop for Paused<'_> {
    fn drop(&mut self) {
        self.0.lock().pauses -= 1;
    }
}

impl Classes {
    /// Waits until no bucket is between this machine and another one, and lets none begin.
    ///
    /// # Errors
    /// [`MoveError::Busy`]: some have been on their way for longer than that may take.
    pub fn pause(&self) -> Result<Paused<'_>, MoveError> {
        let began = Instant::now();
        let mut inside = self.lock();
        inside.pauses += 1;
        let paused = Paused(self);
        while !inside.waiting.is_empty() {
            let left = MOST.saturating_sub(began.elapsed());
            if left.is_zero() {
                drop(inside);
                drop(paused);
                return Err(MoveError::Busy);
            }
            // Who settles a bucket notifies nobody: it is seldom.
            let left = left.min(super::away::TURN);
            let waited = self.changed.wait_timeout(inside, left);
            inside = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        drop(inside);
        Ok(paused)
    }

    /// A version of the function is about to run in place of the one that does; none: it is not.
    pub fn expect(&self, successor: Option<Arc<Successor>>) {
        let mut inside = self.lock();
        // Under another key than the first one no version's own key leads where entries are.
        let fits = successor.filter(|_| !inside.rotated && !inside.changed);
        inside.versions.expected = fits;
    }

    /// The version that is about to run, or has just begun to.
    #[must_use]
    pub fn expected(&self) -> Option<Arc<Successor>> {
        let inside = self.lock();
        let versions = &inside.versions;
        { versions.expected.as_ref() }
            .or(versions.runs.as_ref())
            .cloned()
    }

    /// The version that was expected runs on all workers, as the element with this number.
    pub fn succeed(&self, element: u64) {
        let mut inside = self.lock();
        let Some(next) = inside.versions.expected.take() else {
            return;
        };
        if let Some(buckets) = &self.buckets {
            let own = next.contents.buckets.clone();
            *buckets.lock().unwrap_or_else(PoisonError::into_inner) = own;
        }
        inside.of = element;
        inside.versions.generation += 1;
        inside.versions.runs = Some(next);
        self.announce(&inside);
    }

    /// The version that runs, where it is not the first one, and how many have run before it.
    #[must_use]
    pub fn runs(&self) -> (Option<Arc<Successor>>, u64) {
        let inside = self.lock();
        (inside.versions.runs.clone(), inside.versions.generation)
    }
}
