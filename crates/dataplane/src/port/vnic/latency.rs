//! Times from receive to send, counted by the device: exact to one part in sixteen.

use std::sync::atomic::{AtomicU64, Ordering};

/// Steps an octave.
const STEPS: u32 = 16;
const BUCKETS: usize = (64 * STEPS) as usize;

/// Counts of times in ticks, written by one thread and read by any.
#[derive(Debug)]
pub struct Latency(Box<[AtomicU64]>);

impl Default for Latency {
    fn default() -> Self {
        Self((0..BUCKETS).map(|_| AtomicU64::new(0)).collect())
    }
}

/// The bucket of a time: its octave and the four bits behind the leading one.
#[inline]
fn bucket(ticks: u64) -> usize {
    let octave = ticks.max(1).ilog2();
    let step = if octave >= 4 {
        ticks >> (octave - 4)
    } else {
        ticks << (4 - octave)
    };
    octave as usize * STEPS as usize + (step & 15) as usize
}

/// The middle of a bucket, in ticks.
fn middle(bucket: usize) -> f64 {
    let octave = (bucket / STEPS as usize) as i32;
    let step = (bucket % STEPS as usize) as f64;
    (1.0 + (step + 0.5) / f64::from(STEPS)) * 2_f64.powi(octave)
}

impl Latency {
    /// Counts a time; only the thread that owns it may.
    #[inline]
    pub fn add(&self, ticks: u64) {
        if let Some(count) = self.0.get(bucket(ticks)) {
            super::ring::add(count, 1);
        }
    }

    /// The counts now.
    #[must_use]
    pub fn counts(&self) -> Times {
        Times(self.0.iter().map(|c| c.load(Ordering::Relaxed)).collect())
    }
}

/// Counts of times, at some moment or between two.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Times(Vec<u64>);

impl Times {
    /// With the counts of another.
    #[must_use]
    pub fn with(&self, other: &Self) -> Self {
        self.combined(other, u64::wrapping_add)
    }

    /// What was added since another moment.
    #[must_use]
    pub fn since(&self, before: &Self) -> Self {
        self.combined(before, u64::saturating_sub)
    }

    fn combined(&self, other: &Self, how: fn(u64, u64) -> u64) -> Self {
        let zeros = std::iter::repeat(&0);
        let longest = self.0.len().max(other.0.len());
        let mine = self.0.iter().chain(zeros.clone());
        let pairs = mine.zip(other.0.iter().chain(zeros));
        Self(pairs.take(longest).map(|(a, b)| how(*a, *b)).collect())
    }

    /// How many there are.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }

    /// The time below which this share (0 to 1) of all lies, in ticks; none when there are none.
    #[must_use]
    pub fn quantile(&self, share: f64) -> Option<f64> {
        let wanted = (share.clamp(0.0, 1.0) * self.total() as f64).max(1.0);
        let mut seen = 0;
        let found = self.0.iter().position(|count| {
            seen += count;
            seen as f64 >= wanted
        });
        found.map(middle)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_exact_to_a_sixteenth() {
        let latency = Latency::default();
        let before = latency.counts();
        for ticks in 1..=10_000 {
            latency.add(ticks);
        }
        let times = latency.counts().since(&before);
        assert_eq!(times.total(), 10_000);
        for share in [0.01, 0.5, 0.99, 0.999] {
            let ratio = times.quantile(share).unwrap() / (share * 10_000.0);
            assert!((0.94..1.06).contains(&ratio), "{share}: {ratio}");
        }
        assert_eq!(Times::default().quantile(0.5), None);
    }

    #[test]
    fn every_time_has_a_bucket() {
        let latency = Latency::default();
        for ticks in [0, 1, 15, 16, 17, u64::MAX] {
            latency.add(ticks);
        }
        assert_eq!(latency.counts().total(), 6);
        assert!((0..u64::BITS).all(|bit| bucket(1 << bit) < BUCKETS));
    }
}
