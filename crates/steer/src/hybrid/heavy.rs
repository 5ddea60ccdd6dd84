//! Choice of the keys that are replicated, from packets as they come.
//!
//! Packets are counted by core, and a sample of them by key. At the end of each period the load of the busiest core is worked out
//! for what could be moved: a packet of a sharded key costs its core one unit, one of a replicated key (1 + (n - 1) r) / n on each
//! of n cores, where r is the cost of a row over that of a packet. A key is moved if that makes the busiest core less busy. All
//! follows from the packets alone, so that two runs over one capture decide alike.
//!
//! Keys that are hardly worth it must not come and go: a move costs more than many packets. So what is counted goes into ever longer
//! decisions, of one, two, four and then eight periods, in which chance does not reach what a promotion has to gain.

use std::collections::HashMap;

use super::{Key, MAX_ELEPHANTS, Move};

/// Packets of a period.
pub const PERIOD: u32 = 1 << 14;
/// Periods of a decision, at most: with 16 cores, a core's share of them is counted to a hundredth.
const LONGEST: u32 = 8;
/// One of this many packets is counted by its key.
const SAMPLE: u32 = 4;
/// Keys that are counted in a period. One with a hundredth of the packets is hardly ever behind so many others.
const COUNTED: usize = 1 << 10;
/// Cost of a row over that of a packet where nobody measured it (docs/measurements/replication.md: 0.05 to 0.2 with
/// receiving and sending).
pub const ROW: f64 = 0.15;
/// The busiest core has to become less busy by this much of an even share for a key to be promoted...
const GAIN: f64 = 0.05;
/// ... and may become busier by this much for one to be demoted.
const LOSS: f64 = 0.01;

/// A period's counts.
#[derive(Clone, Debug)]
pub struct Heavy {
    row: f64,
    /// of this period
    packets: u32,
    /// of this decision: periods, how many of them are over, their packets
    periods: u32,
    over: u32,
    counted: u64,
    /// packets of sharded keys by core
    loads: Vec<u64>,
    /// by sampled sharded key: owner and samples
    sampled: HashMap<Key, (u32, u32)>,
    /// replicated keys with their owners and packets
    replicated: Vec<(Key, u32, u64)>,
    /// of these, those that were chosen and are sharded until somebody says that they begin
    waiting: Vec<Key>,
}

impl Heavy {
    /// For this many cores; `row`: the cost of a row over that of a packet, see [`ROW`].
    #[must_use]
    pub fn new(cores: u16, row: f64) -> Self {
        Self {
            row,
            packets: 0,
            periods: 1,
            over: 0,
            counted: 0,
            loads: vec![0; usize::from(cores.max(1))],
            sampled: HashMap::new(),
            replicated: Vec::new(),
            waiting: Vec::new(),
        }
    }

    /// A key that was chosen stays sharded for now. It counts as replicated, and is not demoted.
    pub fn waits(&mut self, key: Key) {
        self.waiting.push(key);
    }

    /// A key that waited is replicated from here on.
    pub fn begins(&mut self, key: Key) {
        self.waiting.retain(|k| *k != key);
    }

    /// Whether the next packet's key is wanted although it may not be replicated: of one in four, but not of every fourth,
    /// which traffic that alternates would always or never meet. Multiples of the golden ratio are spread alike over any stride.
    #[must_use]
    pub fn samples(&self) -> bool {
        Self::samples_number(u64::from(self.packets))
    }

    /// The same of a packet by its number among all, where several count.
    #[inline]
    #[must_use]
    pub fn samples_number(number: u64) -> bool {
        (number as u32).wrapping_mul(0x9e37_79b1) < u32::MAX / SAMPLE
    }

    /// Counts what others have counted: packets of sharded keys by owner, those among samples by key with its owner, and packets of
    /// replicated keys.
    pub fn merge(&mut self, loads: &[u64], sampled: &[(Key, u32, u32)], replicated: &[(Key, u64)]) {
        let both = self.loads.iter_mut().zip(loads);
        both.for_each(|(sum, load)| *sum += load);
        for (key, owner, samples) in sampled {
            self.sampled.entry(*key).or_insert((*owner, 0)).1 += samples;
        }
        for (key, packets) in replicated {
            if let Some(known) = self.replicated.iter_mut().find(|r| r.0 == *key) {
                known.2 += packets;
            }
        }
        let packets = loads.iter().sum::<u64>() + replicated.iter().map(|r| r.1).sum::<u64>();
        self.packets = self.packets.saturating_add(packets as u32);
    }

    /// Counts a packet of a sharded key, which is told if [`Self::samples`] asks; true at the end of a period.
    pub fn sharded(&mut self, owner: u32, key: Option<Key>) -> bool {
        if let Some(load) = self.loads.get_mut(owner as usize) {
            *load += 1;
        }
        if let Some(key) = key
            && (self.sampled.len() < COUNTED || self.sampled.contains_key(&key))
        {
            self.sampled.entry(key).or_insert((owner, 0)).1 += 1;
        }
        self.count()
    }

    /// Counts a packet of a replicated key; true at the end of a period.
    pub fn replicated(&mut self, key: Key) -> bool {
        if let Some(known) = self.replicated.iter_mut().find(|r| r.0 == key) {
            known.2 += 1;
        }
        self.count()
    }

    fn count(&mut self) -> bool {
        self.packets += 1;
        self.packets >= PERIOD
    }

    /// Ends a period: keys to move, with their owners, those to demote first; none where a decision takes longer.
    pub fn decide(&mut self) -> Vec<(Move, Key, u32)> {
        let mut moves = Vec::new();
        self.counted += u64::from(std::mem::take(&mut self.packets));
        self.over += 1;
        if self.over < self.periods {
            return moves;
        }
        self.over = 0;
        self.periods = (2 * self.periods).min(LONGEST);
        let cores = self.loads.len() as f64;
        let even = std::mem::take(&mut self.counted) as f64 / cores;
        // What a packet of a replicated key costs each core.
        let each = (1.0 + (cores - 1.0) * self.row) / cores;
        let mut loads: Vec<f64> = self.loads.iter().map(|l| *l as f64).collect();
        let mut all: f64 = self.replicated.iter().map(|r| r.2 as f64).sum();
        let busiest = |loads: &[f64]| loads.iter().copied().fold(0.0, f64::max);
        // The lightest first: it gives the least away.
        self.replicated.sort_by_key(|r| (r.2, r.0));
        let mut kept = Vec::new();
        for key in &self.waiting {
            if let Some((owner, samples)) = self.sampled.remove(key) {
                let count = f64::from(samples * SAMPLE);
                if let Some(load) = loads.get_mut(owner as usize) {
                    *load = (*load - count).max(0.0);
                }
                all += count;
            }
        }
        for (key, owner, packets) in std::mem::take(&mut self.replicated) {
            if self.waiting.contains(&key) {
                kept.push((key, owner, 0));
                continue;
            }
            let count = packets as f64;
            let now = busiest(&loads) + all * each;
            let mut then = loads.clone();
            if let Some(load) = then.get_mut(owner as usize) {
                *load += count;
            }
            if busiest(&then) + (all - count) * each <= now + LOSS * even {
                moves.push((Move::Demote, key, owner));
                (loads, all) = (then, all - count);
            } else {
                kept.push((key, owner, 0));
            }
        }
        // A key that began meanwhile was sampled before.
        let sampled = std::mem::take(&mut self.sampled).into_iter();
        let mut sampled: Vec<(Key, u32, f64)> = sampled
            .filter(|(key, _)| !kept.iter().any(|k| k.0 == *key))
            .map(|(key, (owner, samples))| (key, owner, f64::from(samples * SAMPLE)))
            .collect();
        sampled.sort_by(|a, b| b.2.total_cmp(&a.2).then(a.0.cmp(&b.0)));
        let demoted: Vec<Key> = moves.iter().map(|m| m.1).collect();
        // Where several cores are as busy, one of each has to go before any core is less busy: keys are chosen for as long as
        // there may be gain, and those are promoted that gain enough together.
        let begun = kept.len();
        let (mut chosen, mut least) = (Vec::new(), busiest(&loads) + all * each);
        let mut worth = 0;
        while begun + chosen.len() < MAX_ELEPHANTS && chosen.len() - worth < loads.len() {
            let most = busiest(&loads);
            // The heaviest key of the busiest core.
            let on = |owner: u32| loads.get(owner as usize).is_some_and(|l| *l >= most);
            let found = (sampled.iter()).position(|s| on(s.1) && !demoted.contains(&s.0));
            let Some((key, owner, count)) = found.map(|at| sampled.remove(at)) else {
                break;
            };
            // What a sample says of a key is not more than its core has.
            let count = count.min(most);
            if let Some(load) = loads.get_mut(owner as usize) {
                *load = (*load - count).max(0.0);
            }
            all += count;
            chosen.push((key, owner));
            let (now, more) = (busiest(&loads) + all * each, chosen.len() - worth);
            if now <= least - GAIN * even * more as f64 {
                (least, worth) = (now, chosen.len());
            }
        }
        for (key, owner) in chosen.into_iter().take(worth) {
            moves.push((Move::Promote, key, owner));
            kept.push((key, owner, 0));
        }
        self.replicated = kept;
        self.loads.fill(0);
        moves
    }

    /// A key that was to be moved stays as it was.
    pub fn refused(&mut self, of: (Move, Key, u32)) {
        match of.0 {
            Move::Promote => {
                self.replicated.retain(|r| r.0 != of.1);
                self.begins(of.1);
            }
            Move::Demote => self.replicated.push((of.1, of.2, 0)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As many periods as a decision takes: `shares` percent of the packets are of these keys, with owners; the rest of keys of their
    /// own.
    fn period(heavy: &mut Heavy, shares: &[(u128, u32, u32)]) -> Vec<(Move, Key, u32)> {
        let cores = heavy.loads.len() as u32;
        let mut number = 0_u32;
        loop {
            // Packets come in an order that no period of the sample meets.
            let place = number.wrapping_mul(2_654_435_761) >> 8;
            number += 1;
            let mut at = place % 100;
            let found = shares.iter().find(|s| {
                let here = at < s.2;
                at = at.wrapping_sub(s.2);
                here
            });
            let (key, owner) = match found {
                Some((key, owner, _)) => (Key(*key), *owner),
                None => (Key(1000 + u128::from(place)), place / 100 % cores),
            };
            let over = match heavy.replicated.iter().any(|r| r.0 == key) {
                true => heavy.replicated(key),
                false => {
                    let key = heavy.samples().then_some(key);
                    heavy.sharded(owner, key)
                }
            };
            if over {
                let moves = heavy.decide();
                if heavy.over == 0 {
                    return moves;
                }
            }
        }
    }

    #[test]
    fn a_heavy_key_is_promoted_once_and_demoted_when_it_is_gone() {
        let mut heavy = Heavy::new(4, ROW);
        let shares = [(7, 2, 50)];
        assert_eq!(period(&mut heavy, &shares), [(Move::Promote, Key(7), 2)]);
        for _ in 0..3 {
            assert_eq!(period(&mut heavy, &shares), []);
        }
        assert_eq!(period(&mut heavy, &[]), [(Move::Demote, Key(7), 2)]);
        assert_eq!(period(&mut heavy, &[]), []);
    }

    /// Keys that are hardly worth it, of packets by chance, may come and go while decisions are short.
    #[test]
    fn keys_at_the_border_do_not_come_and_go() {
        let shares = [54, 5, 4, 4, 3, 3, 2, 2, 2, 1];
        let mut late = 0;
        for seed in 0..12_u64 {
            let mut heavy = Heavy::new(7, ROW);
            let mut drawn = seed;
            let owner = |key: u64| (key.wrapping_mul(0x9e37_79b9 + 2 * seed) >> 7) as u32 % 7;
            let mut decisions = Vec::new();
            for _ in 0..31 * PERIOD {
                drawn = drawn.wrapping_mul(6_364_136_223_846_793_005);
                drawn = drawn.wrapping_add(1);
                let mut at = (drawn >> 33) % 100;
                let found = shares.iter().position(|share| {
                    let here = at < *share;
                    at = at.wrapping_sub(*share);
                    here
                });
                let key = found.map_or(100 + (drawn >> 40) % 800, |key| key as u64);
                let (key, owner) = (Key(key.into()), owner(key));
                let over = match heavy.replicated.iter().any(|r| r.0 == key) {
                    true => heavy.replicated(key),
                    false => {
                        let key = heavy.samples().then_some(key);
                        heavy.sharded(owner, key)
                    }
                };
                if over {
                    decisions.push(heavy.decide().len());
                }
            }
            late += decisions.iter().skip(15).sum::<usize>();
        }
        assert!(late <= 2, "{late}");
    }

    #[test]
    fn even_traffic_is_left_sharded() {
        let mut heavy = Heavy::new(8, ROW);
        assert_eq!(period(&mut heavy, &[]), []);
        // Keys of an even share each lie on cores of their own.
        let even: Vec<_> = (0..8).map(|i| (u128::from(i), i, 12)).collect();
        assert_eq!(period(&mut heavy, &even), []);
        // On two cores nothing is gained by rows as dear as packets.
        let mut dear = Heavy::new(2, 1.0);
        assert_eq!(period(&mut dear, &[(7, 1, 90)]), []);
    }

    /// Both directions of one flow: neither of them alone makes the busiest core less busy.
    #[test]
    fn a_heavy_key_of_each_of_two_cores_go_together() {
        let mut heavy = Heavy::new(3, ROW);
        let shares = [(7, 2, 41), (8, 0, 41)];
        let mut moves = period(&mut heavy, &shares);
        moves.sort_by_key(|m| m.1);
        let both = [(Move::Promote, Key(7), 2), (Move::Promote, Key(8), 0)];
        assert_eq!(moves, both);
        for _ in 0..3 {
            assert_eq!(period(&mut heavy, &shares), []);
        }
        // With one gone the other alone is still worth it.
        assert_eq!(
            period(&mut heavy, &[(7, 2, 60)]),
            [(Move::Demote, Key(8), 0)]
        );
    }

    #[test]
    fn two_heavy_keys_of_one_core_go_until_it_is_no_busier_than_others() {
        let mut heavy = Heavy::new(2, ROW);
        let moves = period(&mut heavy, &[(1, 0, 45), (2, 0, 40)]);
        assert!(moves.contains(&(Move::Promote, Key(1), 0)), "{moves:?}");
        heavy.refused((Move::Promote, Key(1), 0));
        assert!(heavy.replicated.iter().all(|r| r.0 != Key(1)));
    }
}
