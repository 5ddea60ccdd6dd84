//! A limit on the packets that all workers receive together.

use std::sync::atomic::{AtomicU64, Ordering};

/// How many packets were received, and how many more workers are about to receive.
#[derive(Debug, Default)]
pub struct Limit {
    claimed: AtomicU64,
    received: AtomicU64,
}

impl Limit {
    /// Room for at most this many packets below the limit.
    pub fn claim(&self, limit: u64, most: usize) -> usize {
        let mut room = 0;
        let _ = self
            .claimed
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |claimed| {
                room = limit.saturating_sub(claimed).min(most as u64);
                Some(claimed + room)
            });
        room as usize
    }

    /// Of so many places that were claimed so many were used.
    pub fn settle(&self, claimed: usize, used: usize) {
        let unused = claimed.saturating_sub(used) as u64;
        self.claimed.fetch_sub(unused, Ordering::Relaxed);
        self.received.fetch_add(used as u64, Ordering::Relaxed);
    }

    /// Whether this many were received.
    pub fn reached(&self, limit: u64) -> bool {
        self.received.load(Ordering::Relaxed) >= limit
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workers_together_take_no_more_than_the_limit() {
        let limit = Limit::default();
        let taken = std::thread::scope(|scope| {
            let worker = |odd: usize| {
                let limit = &limit;
                scope.spawn(move || {
                    let mut taken = 0;
                    while !limit.reached(10_001) {
                        let room = limit.claim(10_001, 32);
                        // Sometimes fewer come than there is room for.
                        let used = if taken % 3 == odd { room / 2 } else { room };
                        limit.settle(room, used);
                        taken += used;
                        if room == 1 && used == 0 {
                            let room = limit.claim(10_001, 1);
                            limit.settle(room, room);
                            taken += room;
                        }
                    }
                    taken
                })
            };
            let threads: Vec<_> = (0..3).map(worker).collect();
            let joined = threads.into_iter().map(|t| t.join().unwrap_or(0));
            joined.sum::<usize>()
        });
        assert_eq!(taken, 10_001);
    }
}
