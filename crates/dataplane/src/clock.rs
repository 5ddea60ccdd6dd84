//! Time measured by the processor's time stamp counter.
//!
//! A burst takes about a microsecond; reading the counter costs some 20 cycles, a clock call three
//! times that. The counter runs at a constant rate on every x86-64 processor of the last decade
//! (`constant_tsc`, `nonstop_tsc`); its rate is measured against the monotonic clock over the run.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// A run shorter than this is followed by a wait, so that the rate is known to better than 0.1 %.
const SHORTEST: Duration = Duration::from_millis(5);

/// The counter now, in ticks of unknown length.
#[inline]
#[must_use]
#[cfg(target_arch = "x86_64")]
pub fn ticks() -> u64 {
    // SAFETY: RDTSC exists on every x86-64 processor, and Linux leaves it enabled for user code.
    unsafe { core::arch::x86_64::_rdtsc() }
}

/// The counter now: where there is no time stamp counter, the monotonic clock in nanoseconds.
#[inline]
#[must_use]
#[cfg(not(target_arch = "x86_64"))]
pub fn ticks() -> u64 {
    static START: std::sync::OnceLock<Instant> = std::sync::OnceLock::new();
    START.get_or_init(Instant::now).elapsed().as_nanos() as u64
}

/// The wall clock, ns since the epoch: the time of packets that carry none.
#[must_use]
pub fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |d| d.as_nanos() as u64)
}

/// Learns how long a tick is.
#[derive(Debug)]
pub struct Rate {
    clock: Instant,
    ticks: u64,
}

impl Rate {
    /// Begins to measure.
    #[must_use]
    pub fn start() -> Self {
        Self {
            clock: Instant::now(),
            ticks: ticks(),
        }
    }

    /// Time since the start.
    #[must_use]
    pub fn elapsed(&self) -> Duration {
        self.clock.elapsed()
    }

    /// Nanoseconds a tick, above zero; waits a few milliseconds if it was started just now.
    #[must_use]
    pub fn ns_per_tick(&self) -> f64 {
        if let Some(rest) = SHORTEST.checked_sub(self.clock.elapsed()) {
            std::thread::sleep(rest);
        }
        let ticks = ticks().saturating_sub(self.ticks).max(1);
        self.clock.elapsed().as_nanos() as f64 / ticks as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sleep_measures_as_long_as_it_is() {
        let rate = Rate::start();
        let before = ticks();
        std::thread::sleep(Duration::from_millis(20));
        let slept = ticks() - before;
        let ms = slept as f64 * rate.ns_per_tick() / 1e6;
        // The sleep may be longer on a busy machine, never shorter.
        assert!((19.9..2000.0).contains(&ms), "{ms}");
    }
}
