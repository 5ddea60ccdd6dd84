//! A time that is taken off piece by piece.

use std::time::{Duration, Instant};

/// How much is left.
pub(super) struct Clock {
    left: Duration,
}

impl Clock {
    /// So much.
    pub fn new(left: Duration) -> Self {
        Self { left }
    }

    /// What is left.
    pub fn left(&self) -> Duration {
        self.left
    }

    /// Whether nothing is left.
    pub fn is_over(&self) -> bool {
        self.left.is_zero()
    }

    /// Runs, if there is time left, and takes the time off it.
    pub fn timed<T>(&mut self, run: impl FnOnce() -> T) -> Option<T> {
        if self.is_over() {
            return None;
        }
        let began = Instant::now();
        let made = run();
        self.left = self.left.saturating_sub(began.elapsed());
        Some(made)
    }
}
