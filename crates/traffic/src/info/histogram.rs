//! Distributions in bounded memory: exact for small values, logarithmic for large ones.

use super::description::{Bin, Quantiles};

/// Below this every value has its own counter, so that lengths of frames are exact.
const EXACT: u64 = 2048;
/// Counters for each power of two above: the upper five bits of a value after its first.
const STEPS: u32 = 32;

#[derive(Clone)]
pub(super) struct Histogram {
    counts: Vec<u64>,
    total: u64,
    min: u64,
    max: u64,
}

impl Default for Histogram {
    fn default() -> Self {
        let logarithmic = (64 - EXACT.ilog2()) * STEPS;
        let counts = vec![0; EXACT as usize + logarithmic as usize];
        Self {
            counts,
            total: 0,
            min: u64::MAX,
            max: 0,
        }
    }
}

fn place(value: u64) -> usize {
    if value < EXACT {
        return value as usize;
    }
    let power = value.ilog2();
    let step = (value >> (power - STEPS.ilog2())) as u32 % STEPS;
    EXACT as usize + ((power - EXACT.ilog2()) * STEPS + step) as usize
}

/// The least value of a place.
fn least(place: usize) -> u64 {
    let Some(above) = place.checked_sub(EXACT as usize) else {
        return place as u64;
    };
    let (power, step) = (above as u32 / STEPS + EXACT.ilog2(), above as u32 % STEPS);
    u64::from(STEPS + step) << (power - STEPS.ilog2())
}

impl Histogram {
    pub(super) fn add(&mut self, value: u64) {
        if let Some(count) = self.counts.get_mut(place(value)) {
            *count += 1;
        }
        self.total += 1;
        self.min = self.min.min(value);
        self.max = self.max.max(value);
    }

    /// The least value that this many hundredths of all values do not exceed.
    fn quantile(&self, hundredths: u64) -> u64 {
        let rank = (u128::from(self.total) * u128::from(hundredths))
            .div_ceil(100)
            .max(1);
        let mut seen = 0_u128;
        for (place, count) in self.counts.iter().enumerate() {
            seen += u128::from(*count);
            if seen >= rank {
                return least(place).clamp(self.min, self.max);
            }
        }
        self.max
    }

    pub(super) fn quantiles(&self) -> Quantiles {
        if self.total == 0 {
            return Quantiles::default();
        }
        Quantiles {
            min: self.min,
            p10: self.quantile(10),
            p25: self.quantile(25),
            p50: self.quantile(50),
            p75: self.quantile(75),
            p90: self.quantile(90),
            p99: self.quantile(99),
            max: self.max,
        }
    }

    /// Counts between these first values, the last without end; only what lies below [`EXACT`] can be
    /// told apart exactly, and above it at powers of two.
    pub(super) fn bins(&self, firsts: &[u64]) -> Vec<Bin> {
        let mut bins: Vec<_> = firsts
            .iter()
            .map(|&from| Bin {
                from,
                to: None,
                packets: 0,
            })
            .collect();
        for (bin, next) in bins.iter_mut().zip(firsts.iter().skip(1)) {
            bin.to = Some(next - 1);
        }
        for (place, count) in self.counts.iter().enumerate() {
            let value = least(place);
            let bin = bins.iter_mut().rev().find(|bin| bin.from <= value);
            if let Some(bin) = bin {
                bin.packets += count;
            }
        }
        bins
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_and_their_least_values_agree() {
        for value in (0..10_000).chain((0..64).flat_map(|power| {
            let value = 1_u64 << power;
            [value - 1, value, value + value / 3, value + (value - 1)]
        })) {
            let least = least(place(value));
            assert!(least <= value, "{value}: {least}");
            assert!(value - least <= value / 32, "{value}: {least}");
        }
        assert_eq!(place(u64::MAX) + 1, Histogram::default().counts.len());
    }

    #[test]
    fn quantiles_of_a_hundred() {
        let mut histogram = Histogram::default();
        (1..=100).for_each(|value| histogram.add(value));
        let q = histogram.quantiles();
        assert_eq!((q.min, q.p10, q.p50, q.p99, q.max), (1, 10, 50, 99, 100));
        let bins = histogram.bins(&[0, 10, 50]);
        assert_eq!(
            bins.iter().map(|bin| bin.packets).collect::<Vec<_>>(),
            [9, 40, 51]
        );
    }
}
