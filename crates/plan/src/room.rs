//! How many entries each worker's part of a divided table has room for.
//!
//! How a load falls on workers is unknown, and can be as bad as all of it on one (a single server, a single /8). A part
//! that has room for the whole declared capacity refuses nothing that one core would take, whatever the traffic is. It
//! costs memory, so all parts of one object together have at most [`MOST_BYTES`]; beyond that they hold as many entries
//! as fit, and never fewer than even traffic needs ([`fair`]).

use millrace_object::contract::Division;
use millrace_object::program::StateObject;

/// Bytes that all parts of one object may take together, where the fair ones take less.
pub const MOST_BYTES: u64 = 512 << 20;

/// How often a table that would just be full on one core may be full before that on one of several workers, under even
/// traffic: once in a million tables.
pub const RISK: f64 = 1e-6;

/// Whether the entries of an object are divided with it. What is addressed by an index, or leases numbers, has all of
/// its places on every worker.
#[must_use]
pub fn divides(object: &StateObject) -> bool {
    object.kind.division() == Some(Division::Entries)
}

/// Entries of each of `workers` parts of an object, of which the indirection table leads the part `largest` to the
/// worker that it leads to most often.
#[must_use]
pub fn part(object: &StateObject, largest: f64, workers: usize) -> u64 {
    let whole = object.capacity;
    if !divides(object) || workers < 2 {
        return whole;
    }
    let fits = |entries: u64| {
        let mut sized = object.clone();
        sized.capacity = entries;
        sized.bytes().saturating_mul(workers as u64) <= MOST_BYTES
    };
    if fits(whole) {
        return whole;
    }
    let (mut low, mut high) = (fair(whole, largest, workers), whole);
    if !fits(low) {
        return low;
    }
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        match fits(middle) {
            true => low = middle,
            false => high = middle,
        }
    }
    low
}

/// Entries that a worker's part must hold so that it is not the first to be full under even traffic.
///
/// A table of `whole` entries, each of which comes to this worker with probability `largest` and for
/// itself, as a hash does it, has here X ~ Bin(whole, largest) entries when it is just full. By Bernstein's
/// inequality P(X >= m + t) <= exp(-t² / (2 (v + t/3))) with m the mean and v the variance. That this
/// happens to any of the workers has at most probability [`RISK`] when the exponent is L = ln(workers / RISK),
/// of which the positive root is t = L/3 + sqrt(L²/9 + 2 v L). The part is m + t, rounded up, and never
/// more than the whole.
///
/// At 65,536 entries and 8 workers that is 8,675 in place of 8,192.
#[must_use]
pub fn fair(whole: u64, largest: f64, workers: usize) -> u64 {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_worker_has_the_whole_and_none_has_more() {
        assert_eq!(fair(65536, 1.0, 1), 65536);
        assert_eq!(fair(65536, 0.125, 8), 8675);
        for whole in [0, 1, 2, 7, 100] {
            for workers in [1, 2, 64, 1024] {
                let part = fair(whole, 1.0 / workers as f64, workers);
                assert!(
                    part <= whole.max(1) && (workers > 1 || part == whole),
                    "{whole} {workers}"
                );
            }
        }
        // Everything goes to one worker: it needs all of it.
        assert_eq!(fair(1000, 1.0, 4), 1000);
    }

    /// Balls thrown into bins by a hash: a part of the derived size overflows in none of many trials, the
    /// bare mean in nearly all.
    #[test]
    fn the_slack_is_what_the_spread_needs() {
        let (whole, workers) = (4096_u64, 8_usize);
        let room = fair(whole, 1.0 / workers as f64, workers);
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
