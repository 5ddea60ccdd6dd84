//! A balancer: gives buckets of the indirection table to other workers while packets come, as their load changes.
//!
//! Every so often it takes what workers have sampled of each bucket's packets (one packet of a burst, drawn at random, counts for all of it), and
//! moves from the worker with the most to the one with the least the bucket that brings both nearest to their mean, up to [`MOST`] buckets at a
//! time. RSS++ (Barbette et al., RSS++: load and state-aware receive side scaling, CoNEXT 2019, section 4) does so at 1 to 10 times a second and
//! moves as few buckets as bring the imbalance under a threshold; here the entries of the function move with them, which it leaves to the function.
//!
//! It does nothing where nothing is gained: where loads differ by less than [`ENOUGH`] of their mean, where few packets were sampled, and where the
//! heaviest worker has its load of one bucket, which no table divides ([`Judged::Elephant`]; `--strategy hybrid` does).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use millrace_dataplane::classes::{Classes, MoveError};

/// Buckets that are moved at a time.
pub const MOST: usize = 16;
/// How far the heaviest worker may be above the mean, as a part of it.
pub const ENOUGH: f64 = 0.05;
/// Packets, as sampled, below which nothing is said.
const FEW: u64 = 4096;
/// Packets that are looked at for each worker before its load is judged: its part is known to 1.6 % then (one standard deviation), a third of
/// [`ENOUGH`], so that chance alone moves hardly anything.
const SAMPLES: u64 = 4096;

/// A move that is worth it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Better {
    /// which bucket
    pub bucket: usize,
    /// the worker that has it
    pub from: usize,
    /// the worker that gets it
    pub to: usize,
}

/// What is to be done with a load.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Judged {
    /// nothing: there were few packets, or workers have about the same
    Even,
    /// these moves, in this order
    Moves(Vec<Better>),
    /// nothing: the heaviest worker has its load of this bucket
    Elephant(usize),
}

/// Judges the packets of each bucket over the last while, at these workers, of which the first `used` have buckets.
#[must_use]
pub fn judge(loads: &[u64], table: &[usize], used: usize) -> Judged {
    let all: u64 = loads.iter().sum();
    if all < FEW || used < 2 {
        return Judged::Even;
    }
    let mut has = vec![0_u64; used];
    let mut at = table.to_vec();
    for (load, worker) in loads.iter().zip(&at) {
        if let Some(has) = has.get_mut(*worker) {
            *has += load;
        }
    }
    let mean = all as f64 / used as f64;
    let heaviest = |has: &[u64]| has.iter().max().copied().unwrap_or(0);
    let before = heaviest(&has);
    let mut moves = Vec::new();
    while moves.len() < MOST {
        let order = |w: &usize| has.get(*w).copied().unwrap_or(0);
        let (Some(from), Some(to)) = ((0..used).max_by_key(order), (0..used).min_by_key(order))
        else {
            break;
        };
        let (most, least) = (order(&from), order(&to));
        if most as f64 <= mean * (1.0 + ENOUGH) {
            break;
        }
        // Which bucket leaves the smaller of what both have nearest to the mean: the larger of the two has to become less than it was.
        let gap = most - least;
        let own = loads
            .iter()
            .zip(&at)
            .enumerate()
            .filter(|(_, (_, w))| **w == from);
        let best = own
            .map(|(bucket, (load, _))| (bucket, *load))
            .filter(|(_, load)| *load > 0 && *load < gap)
            .min_by_key(|(_, load)| (2 * load).abs_diff(gap));
        let Some((bucket, load)) = best else {
            let own = loads.iter().zip(&at).enumerate();
            let own = own.filter(|(_, (_, w))| **w == from);
            let elephant = own.max_by_key(|(_, (load, _))| **load);
            return match (moves.is_empty(), elephant) {
                (true, Some((bucket, _))) => Judged::Elephant(bucket),
                _ => break,
            };
        };
        for (worker, sign) in [(from, false), (to, true)] {
            if let Some(has) = has.get_mut(worker) {
                *has = if sign { *has + load } else { *has - load };
            }
        }
        if let Some(at) = at.get_mut(bucket) {
            *at = to;
        }
        moves.push(Better { bucket, from, to });
    }
    // So little is not worth packets that wait.
    let gain = before.saturating_sub(heaviest(&has)) as f64;
    match gain <= mean * ENOUGH / 4.0 {
        true => Judged::Even,
        false => Judged::Moves(moves),
    }
}

/// A balancer at work on a thread of its own, which ends when this is dropped.
pub struct Balancer {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Balancer {
    /// Over these classes, which are buckets, `every` so often. `say` hears of an elephant, once as long as it is the same bucket.
    #[must_use]
    pub fn begin(
        classes: &Arc<Classes>,
        every: Duration,
        mut say: impl FnMut(usize, f64) + Send + 'static,
    ) -> Self {
        let (stop, classes) = (Arc::new(AtomicBool::new(false)), classes.clone());
        let stopped = stop.clone();
        let thread = std::thread::Builder::new().name("balancer".to_owned());
        let thread = thread.spawn(move || {
            let (mut before, mut seen) = (classes.loads(), classes.samples());
            let mut told = None;
            while !stopped.load(Ordering::Relaxed) {
                std::thread::park_timeout(every);
                let (now, samples) = (classes.loads(), classes.samples());
                if samples.saturating_sub(seen) < SAMPLES * classes.workers().1 as u64 {
                    continue;
                }
                seen = samples;
                let loads: Vec<u64> = now.iter().zip(&before).map(|(n, b)| n - b).collect();
                before = now;
                match judge(&loads, &classes.table(), classes.workers().1) {
                    Judged::Even => {}
                    Judged::Elephant(bucket) => {
                        if told.replace(bucket) != Some(bucket) {
                            let all: u64 = loads.iter().sum();
                            let own = loads.get(bucket).copied().unwrap_or(0);
                            say(bucket, own as f64 / all.max(1) as f64);
                        }
                    }
                    Judged::Moves(moves) => {
                        for better in moves {
                            if stopped.load(Ordering::Relaxed) {
                                break;
                            }
                            if classes.assign(better.bucket, better.to) == Err(MoveError::Ends) {
                                return;
                            }
                        }
                        // What was counted meanwhile was counted at the old workers.
                        (before, seen) = (classes.loads(), classes.samples());
                    }
                }
            }
        });
        Self {
            stop,
            thread: thread.ok(),
        }
    }
}

impl Drop for Balancer {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            // One that panicked moves nothing any more.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(of: usize, workers: usize) -> Vec<usize> {
        (0..of).map(|bucket| bucket % workers).collect()
    }

    /// The load of each worker after what was judged, as a part of the mean.
    fn after(loads: &[u64], table: &mut [usize], used: usize) -> f64 {
        for _ in 0..40 {
            let Judged::Moves(moves) = judge(loads, table, used) else {
                break;
            };
            assert!(moves.len() <= MOST);
            for m in moves {
                assert_eq!(table.get(m.bucket), Some(&m.from));
                if let Some(at) = table.get_mut(m.bucket) {
                    *at = m.to;
                }
            }
        }
        let mut has = vec![0; used];
        for (load, worker) in loads.iter().zip(table.iter()) {
            if let Some(has) = has.get_mut(*worker) {
                *has += load;
            }
        }
        let most = has.iter().max().copied().unwrap_or(0);
        most as f64 * used as f64 / loads.iter().sum::<u64>() as f64
    }

    #[test]
    fn a_load_that_is_even_and_one_of_few_packets_are_left_alone() {
        assert_eq!(judge(&[1000; 128], &table(128, 4), 4), Judged::Even);
        let few: Vec<u64> = (0..128).map(|b| if b % 2 == 0 { 10 } else { 0 }).collect();
        assert_eq!(judge(&few, &table(128, 2), 2), Judged::Even);
        assert_eq!(judge(&[1000; 128], &table(128, 4), 1), Judged::Even);
    }

    #[test]
    fn heavy_buckets_of_one_worker_are_shared_out_with_few_moves() {
        for workers in [2, 3, 8] {
            let heavy = |bucket: usize| bucket.is_multiple_of(workers);
            let load = |b| if heavy(b) { 1000 + b as u64 } else { 100 };
            let loads: Vec<u64> = (0..512).map(load).collect();
            let mut table = table(512, workers);
            let before = table.clone();
            let worst = after(&loads, &mut table, workers);
            assert!(worst < 1.0 + 2.0 * ENOUGH, "{workers}: {worst}");
            let moved = table.iter().zip(&before).filter(|(a, b)| a != b).count();
            assert!(moved < 256, "{moved}");
        }
    }

    #[test]
    fn an_elephant_is_told_and_others_leave_its_worker() {
        let mut loads = vec![0; 128];
        loads[4] = 100_000;
        assert_eq!(judge(&loads, &table(128, 2), 2), Judged::Elephant(4));
        let mut loads = vec![100; 128];
        loads[4] = 100_000;
        let mut at = table(128, 2);
        after(&loads, &mut at, 2);
        // What is beside it on its worker goes, as much as is worth it; and then nothing moves to and fro.
        assert!(!matches!(judge(&loads, &at, 2), Judged::Moves(_)));
    }

    /// A skewed load whose heavy buckets are others every second, looked at ten times a second: the part of an oracle's throughput, which has the
    /// table balanced to each second beforehand (longest processing time first). Throughput is that of the busiest worker. A simulation: what a
    /// move costs packets is not in it.
    #[test]
    fn heavy_buckets_that_change_every_second_are_followed() {
        let mut state = 9_u64;
        let mut next = || {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (state >> 33) as usize
        };
        for workers in [2, 4] {
            let mut at = table(128, workers);
            let (mut own, mut oracle, mut fixed, mut moved) = (0.0, 0.0, 0.0, 0);
            for _ in 0..60 {
                // Zipf over a permutation of the buckets, with exponent 0.9: the heaviest has about a tenth.
                let mut order: Vec<usize> = (0..128).collect();
                for i in (1..128).rev() {
                    order.swap(i, next() % (i + 1));
                }
                let mut loads = vec![0; 128];
                for (rank, bucket) in order.iter().enumerate() {
                    loads[*bucket] = (20_000.0 / (rank as f64 + 1.0).powf(0.9)) as u64;
                }
                let busiest = |table: &[usize]| {
                    let mut has = vec![0; workers];
                    loads.iter().zip(table).for_each(|(l, w)| has[*w] += l);
                    has.iter().max().copied().unwrap_or(1) as f64
                };
                let mut best = vec![0; 128];
                let mut has = vec![0; workers];
                for bucket in &order {
                    let least = (0..workers).min_by_key(|w| has[*w]).unwrap_or(0);
                    has[least] += loads[*bucket];
                    best[*bucket] = least;
                }
                for _ in 0..10 {
                    own += 1.0 / busiest(&at);
                    oracle += 1.0 / busiest(&best);
                    fixed += 1.0 / busiest(&table(128, workers));
                    if let Judged::Moves(moves) = judge(&loads, &at, workers) {
                        moved += moves.len();
                        moves.iter().for_each(|m| at[m.bucket] = m.to);
                    }
                }
            }
            println!(
                "{workers} workers: {:.3} of the oracle's, {:.3} without moves; {:.1} moves a second",
                own / oracle,
                fixed / oracle,
                f64::from(moved as u32) / 60.0
            );
            assert!(own / oracle > 0.9 && own > fixed, "{}", own / oracle);
        }
    }

    #[test]
    fn what_was_moved_once_stays() {
        let loads: Vec<u64> = (0..128).map(|b| 100 + (b * b) as u64 % 977).collect();
        let mut at = table(128, 4);
        after(&loads, &mut at, 4);
        assert_eq!(judge(&loads, &at, 4), Judged::Even);
    }
}
