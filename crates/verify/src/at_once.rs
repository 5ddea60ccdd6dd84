//! Workers of a lane on threads of their own.
//!
//! Workers that share nothing do their packets one by one, each its own. Those that share state do them in bursts, as
//! `run` does, so that what a burst keeps from one packet to the next is tried beside writers in between.

use std::collections::VecDeque;
use std::sync::Barrier;

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::copy::Copy;
use crate::lane::{Done, Lane, Waiting, one};
use crate::outcome::Outcome;
use crate::replica::Numbered;
use crate::schedule::Schedule;
use crate::trace::Packet;

/// The longest burst.
const BURST: usize = 32;

impl Lane<'_> {
    /// A thread for each worker that has something to do.
    pub(super) fn at_once(&mut self, cpus: Option<&[u32]>, done: &mut [Option<Done>]) {
        let turn = self.turn;
        let shares = self.shares;
        let seed = match self.schedule {
            Schedule::Seeded(seed) => seed,
            Schedule::Ingress | Schedule::Threads => 0,
        };
        // Where workers wait for each other's rows, all of them go on to the last.
        let rows = self.numbered.as_ref().map_or(0, Numbered::rows);
        let parts = self.copies.iter_mut().zip(&mut self.queues).enumerate();
        let busy: Vec<_> = parts
            .filter(|(_, (copy, queue))| !queue.is_empty() || copy.applied().is_some())
            .collect();
        let together = Barrier::new(busy.len().max(1));
        let work = |(worker, (copy, queue)): (usize, (&mut Copy, &mut VecDeque<Waiting>))| {
            let by = |index: usize| (worker as u32, turn + index as u64);
            if shares {
                let stream = seed ^ turn.rotate_left(32) ^ worker as u64;
                together.wait();
                return in_bursts(copy, queue, stream, &by);
            }
            let mut burst = copy.burst();
            let mut does = |w: Waiting| {
                let outcome = one(copy, &mut burst, &w, by(w.index), cpus);
                (w, outcome)
            };
            let all = queue.drain(..).map(&mut does).collect::<Vec<_>>();
            if copy.applied().is_some() {
                copy.follow(rows);
            }
            all
        };
        let results: Vec<Vec<(Waiting, Outcome)>> = match busy.len() {
            // Nobody to be beside.
            1 => busy.into_iter().map(work).collect(),
            _ => std::thread::scope(|scope| {
                let work = &work;
                let threads: Vec<_> = busy
                    .into_iter()
                    .map(|b| scope.spawn(move || work(b)))
                    .collect();
                threads.into_iter().filter_map(|t| t.join().ok()).collect()
            }),
        };
        let mut all: Vec<_> = results.into_iter().flatten().collect();
        // What a side made of a flow is the same whoever was first; later packets decide.
        all.sort_by_key(|(w, outcome)| (outcome.commit, w.index));
        self.turn += done.len() as u64;
        for (waiting, outcome) in all {
            self.keep(waiting, outcome, done);
        }
    }
}

/// One worker's packets in bursts whose lengths a seed chooses.
fn in_bursts(
    copy: &mut Copy,
    queue: &mut VecDeque<Waiting>,
    seed: u64,
    by: &dyn Fn(usize) -> (u32, u64),
) -> Vec<(Waiting, Outcome)> {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let (mut burst, most) = copy.bursts(BURST);
    let mut all = Vec::with_capacity(queue.len());
    while !queue.is_empty() {
        let count = random.random_range(1..=most).min(queue.len());
        let some: Vec<Waiting> = queue.drain(..count).collect();
        let packets: Vec<&Packet> = some.iter().map(|w| &w.packet).collect();
        let place = |i: usize| by(some.get(i).map_or(0, |w| w.index));
        let (worker, _) = place(0);
        let outcomes = copy.give_all(&mut burst, &packets, worker, place);
        all.extend(some.into_iter().zip(outcomes));
    }
    all
}
