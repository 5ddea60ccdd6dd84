//! The clock of what analyses: processor time of the thread.
//!
//! A machine that does something else besides takes longer, and finds the same: with the wall's clock, what a plan says
//! depended on who else was computing.

use std::cell::Cell;
use std::ops::{Add, Sub};
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

thread_local! {
    /// for others, so far
    static WAITED: Cell<Duration> = const { Cell::new(Duration::ZERO) };
}

/// Says that this thread has waited so long for a process that computed for it, which counts as its own time.
pub fn waited(time: Duration) {
    WAITED.set(WAITED.get().saturating_add(time));
}

/// A moment of the thread that asks, in processor time that it has taken. Those of two threads cannot be compared: what is
/// measured by them begins and ends in one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Moment(Duration);

impl Moment {
    /// This one. A call of the system, a quarter of a microsecond: not for inner loops.
    #[must_use]
    pub fn now() -> Self {
        let now = clock_gettime(ClockId::ThreadCPUTime);
        // Neither is negative: it counts from the thread's beginning.
        let own = Duration::new(
            now.tv_sec.try_into().unwrap_or(0),
            now.tv_nsec.try_into().unwrap_or(0),
        );
        Self(own.saturating_add(WAITED.get()))
    }

    /// What this thread has taken since then.
    #[must_use]
    pub fn elapsed(self) -> Duration {
        Self::now().since(self)
    }

    /// What lies between an earlier one and this; nothing if that is a later one.
    #[must_use]
    pub fn since(self, earlier: Self) -> Duration {
        self.0.saturating_sub(earlier.0)
    }
}

impl Add<Duration> for Moment {
    type Output = Self;

    fn add(self, time: Duration) -> Self {
        Self(self.0.saturating_add(time))
    }
}

impl Sub<Duration> for Moment {
    type Output = Self;

    fn sub(self, time: Duration) -> Self {
        Self(self.0.saturating_sub(time))
    }
}
