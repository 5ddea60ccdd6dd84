//! A worker whose function's state is replicated: what it does beside its packets (`crate::replica`).

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use super::counters::Once;
use super::turn::{DRAIN, Worker};
use crate::mailbox::Order;

impl Worker {
    /// Applies the rows up to `upto` to a replica, which has run all its packets before that.
    pub(super) fn follow(&mut self, upto: u64) {
        if self.group.is_none() || upto == 0 {
            return;
        }
        if let Some(stage) = self.chain.stages.first_mut() {
            stage.replay_to(upto);
        }
        self.replicated();
    }

    /// Counts what a replica has applied; the run ends where it cannot go on.
    pub(super) fn replicated(&mut self) {
        let Some(stage) = self.chain.stages.first_mut() else {
            return;
        };
        let counts = [
            (Once::Replayed, stage.replayed()),
            (Once::Applied, stage.applied()),
        ];
        let fault = stage.fault();
        for (what, count) in counts {
            let place = self.shared.places.once(what);
            self.shared.counters(self.number).set(place, count);
        }
        if let Some(fault) = fault {
            self.failures.push(fault.into());
            self.shared.failed.store(true, Ordering::Relaxed);
            if let Some(lane) = self.lane() {
                lane.order_end(Order::Stop);
            }
        }
    }

    /// Applies all rows there are to a replica between ports, so that all replicas are alike at the end.
    pub(super) fn last_row(&mut self) {
        let Some(group) = self.group.clone().filter(|_| !self.sequenced) else {
            return;
        };
        group.seal();
        let (mut handed, mut end) = (group.handed(), Instant::now() + DRAIN);
        let last = loop {
            let last = group.last();
            if group.handed() > handed && !self.shared.failed.load(Ordering::Relaxed) {
                // Other workers still have packets, and none of them is gone.
                (handed, end) = (group.handed(), Instant::now() + DRAIN);
            }
            // What the device had delivered before it ended.
            let limited = self.limit_reached();
            let received = if limited { 0 } else { self.turn() };
            if last.is_some() && received == 0 || Instant::now() >= end {
                break last;
            }
            if received == 0 {
                std::thread::sleep(Duration::from_micros(200));
            }
        };
        self.follow(last.unwrap_or_else(|| group.handed()));
    }
}
