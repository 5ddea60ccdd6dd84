//! How a state object stands on several workers.

use crate::module::Instance;

/// How a state object stands on several workers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Share {
    /// each worker has the entries of the packets that it owns; all parts together are the object, which
    /// was declared to hold so many entries
    Divided {
        /// the declared capacity
        whole: u64,
    },
    /// each worker adds to numbers of its own, which together are the object's
    Merged,
    /// each worker has a copy, and all are alike: packets write none of them. Also what is one for all
    /// workers: the module tells ([`crate::module::Module::is_shared`])
    Replicated,
}

impl Share {
    /// What is counted when a worker's part of an object of this kind was full while others had room.
    #[must_use]
    pub fn relaxation(kind: &str) -> &'static str {
        if kind.starts_with("lru") {
            "eviction"
        } else {
            "capacity"
        }
    }
}

/// What was in merged objects (by index) before the first packet counts once: workers other than the first begin with zeros.
/// `now` in ns.
pub fn begin(instance: &mut Instance, merged: &[usize], now: u64) {
    if instance.worker() == 0 {
        return;
    }
    for object in merged {
        // What lists no entries, as ring buffers do not, has none to begin with.
        let entries = instance.entries(*object, usize::MAX, now);
        for (key, value) in entries.unwrap_or_default() {
            let _ = instance.set(*object, &key, &vec![0; value.len()], now);
        }
    }
}

/// The merged ones among objects that stand so, by index.
#[must_use]
pub fn merged(shares: &[Share]) -> Vec<usize> {
    let all = shares.iter().enumerate();
    let merged = all.filter(|(_, share)| **share == Share::Merged);
    merged.map(|(at, _)| at).collect()
}

/// Entries that a worker's part of an object must hold so that it is not the first to be full.
///
/// A table of `whole` entries, each of which comes to this worker with probability `largest` and for
/// itself, as a hash does it, has here X ~ Bin(whole, largest) entries when it is just full. By Bernstein's
/// inequality P(X >= m + t) <= exp(-t² / (2 (v + t/3))) with m the mean and v the variance. That this
/// happens to any of the workers has at most probability [`RISK`] when the exponent is L = ln(workers / RISK),
/// of which the positive root is t = L/3 + sqrt(L²/9 + 2 v L). The part is m + t, rounded up, and never
/// more than the whole.
///
/// At 65,536 entries and 8 workers that is 8,675 in place of 8,192, 6 % more memory than on one core; below
/// some hundred entries a worker the spread is as large as the mean and the parts cost a multiple of it.
#[must_use]
pub fn part(whole: u64, largest: f64, workers: usize) -> u64 {
    if workers < 2 {
        return whole;
    }
    // A table may lead to some workers more often than to others; it leads to one at least this often.
    let largest = largest.clamp(1.0 / workers as f64, 1.0);
    let mean = whole as f64 * largest;
    let variance = mean * (1.0 - largest);
    let exponent = (workers as f64 / RISK).ln();
    let third = exponent / 3.0;
    let slack = third + (third * third + 2.0 * variance * exponent).sqrt();
    ((mean + slack).ceil() as u64).clamp(1, whole.max(1))
}

/// How often a table that would just be full on one core may be full before that on one of several workers:
/// once in a million tables.
pub const RISK: f64 = 1e-6;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_worker_has_the_whole_and_none_has_more() {
        assert_eq!(part(65536, 1.0, 1), 65536);
        assert_eq!(part(65536, 0.125, 8), 8675);
        for whole in [0, 1, 2, 7, 100] {
            for workers in [1, 2, 64, 1024] {
                let part = part(whole, 1.0 / workers as f64, workers);
                assert!(
                    part <= whole.max(1) && (workers > 1 || part == whole),
                    "{whole} {workers}"
                );
            }
        }
        // Everything goes to one worker: it needs all of it.
        assert_eq!(part(1000, 1.0, 4), 1000);
    }

    /// Balls thrown into bins by a hash: a part of the derived size overflows in none of many trials, the
    /// bare mean in nearly all.
    #[test]
    fn the_slack_is_what_the_spread_needs() {
        let (whole, workers) = (4096_u64, 8_usize);
        let room = part(whole, 1.0 / workers as f64, workers);
        let (mut over, mut over_mean) = (0, 0);
        let mut state = 1_u64;
        for _ in 0..500 {
            let mut bins = vec![0_u64; workers];
            for _ in 0..whole {
                // SplitMix64 (Steele, Lea, Flood, 2014).
                state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
                let mut z = state;
                z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
                z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
                if let Some(bin) = bins.get_mut(((z ^ (z >> 31)) % workers as u64) as usize) {
                    *bin += 1;
                }
            }
            let most = bins.iter().copied().max().unwrap_or(0);
            over += u32::from(most > room);
            over_mean += u32::from(most > whole / workers as u64);
        }
        assert_eq!(over, 0);
        assert!(over_mean > 490, "{over_mean}");
    }
}
