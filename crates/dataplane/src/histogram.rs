//! How long bursts took: counts in buckets of about equal ratio.
//!
//! A mean says what a run cost; on a machine that others use it also says how often the worker was
//! interrupted. The median of the bursts says what the function costs. Values are kept in buckets of
//! 1/32 of the lower end of their octave, so that a quantile is known to 2 %, in constant memory; a bucket's number is the
//! first bits of a floating-point number.

/// Bits of a number's fraction that tell buckets of an octave apart.
const BITS: u32 = 5;
/// Octaves: values from 1/1024 to 2^38 ns (4 minutes).
const OCTAVES: usize = 48;
/// The first bits of the smallest value, 1/1024: its exponent, as binary64 has it, and no fraction.
const FIRST: u64 = (1023 - 10) << BITS;
/// Bits of a number behind those that name its bucket.
const REST: u32 = f64::MANTISSA_DIGITS - 1 - BITS;

/// Counts of values, in buckets of about equal ratio.
#[derive(Clone, Debug)]
pub struct Histogram {
    counts: Vec<u64>,
    total: u64,
}

impl Default for Histogram {
    fn default() -> Self {
        Self {
            counts: vec![0; OCTAVES << BITS],
            total: 0,
        }
    }
}

impl Histogram {
    /// Adds what another has counted.
    pub fn merge(&mut self, other: &Self) {
        for (count, more) in self.counts.iter_mut().zip(&other.counts) {
            *count += more;
        }
        self.total += other.total;
    }

    /// Values counted.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.total
    }

    /// Counts `weight` values of this size, above zero; what lies outside counts at the end.
    pub fn add(&mut self, value: f64, weight: u64) {
        let bucket = (value.to_bits() >> REST).saturating_sub(FIRST) as usize;
        let bucket = bucket.min(self.counts.len().saturating_sub(1));
        if let Some(count) = self.counts.get_mut(bucket) {
            *count += weight;
        }
        self.total += weight;
    }

    /// The value below which this share (0 to 1) of all lies; 0 when there are none.
    #[must_use]
    pub fn quantile(&self, share: f64) -> f64 {
        if self.total == 0 {
            return 0.0;
        }
        let wanted = (share.clamp(0.0, 1.0) * self.total as f64).max(1.0);
        let mut seen = 0;
        for (bucket, count) in self.counts.iter().enumerate() {
            seen += count;
            if seen as f64 >= wanted {
                let first = f64::from_bits((FIRST + bucket as u64) << REST);
                let next = f64::from_bits((FIRST + bucket as u64 + 1) << REST);
                return (first * next).sqrt();
            }
        }
        0.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_known_to_a_few_per_cent() {
        let mut histogram = Histogram::default();
        for value in 1..=1000 {
            histogram.add(f64::from(value), 1);
        }
        for (share, exact) in [(0.5, 500.0), (0.99, 990.0), (0.01, 10.0)] {
            let ratio: f64 = histogram.quantile(share) / exact;
            assert!((0.98..1.02).contains(&ratio), "{share}: {ratio}");
        }
    }

    #[test]
    fn what_lies_outside_counts_at_the_ends() {
        let mut histogram = Histogram::default();
        assert!(histogram.quantile(0.5) == 0.0);
        for value in [0.0, f64::MIN_POSITIVE, 1e300, f64::NAN] {
            histogram.add(value, 1);
        }
        assert!(histogram.quantile(0.0) < 0.01 && histogram.quantile(1.0) > 1e11);
    }
}
