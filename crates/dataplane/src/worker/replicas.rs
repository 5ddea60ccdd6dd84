//! A worker whose function's state is replicated: what it does beside its packets (`crate::replica`).

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use super::counters::Once;
use super::keep::{Keep, Part, StagePart};
use super::turn::{DRAIN, Worker};
use crate::mailbox::Order;
use crate::replica::{Edit, Effect, Group, Replica};

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

    fn replica(&self) -> Option<&Replica> {
        self.chain.stages.first().and_then(|stage| stage.replica())
    }

    /// Whether it has a replica that could not go on.
    pub(super) fn failed_replica(&self) -> bool {
        self.replica().is_some_and(Replica::failed)
    }

    /// The time of the last row that its replica has applied, ns.
    pub(super) fn row_time(&self) -> u64 {
        self.replica().map_or(self.clock, Replica::time)
    }

    /// Lets all replicas give their parts of the state at one place in the order of rows.
    pub(super) fn keep_at_row(&self, keep: &Arc<Keep>, group: &Arc<Group>) {
        let Some(stage) = self.chain.stages.first() else {
            return;
        };
        let (name, shares) = (stage.life.name.clone(), stage.shares.clone());
        let (keep, timers) = (keep.clone(), group.timers().clone());
        let make = move |instance: &mut crate::module::Instance, at: crate::replica::At| {
            // A heartbeat has let those fire that were due.
            let mut timers = timers.clone();
            timers.pass(at.time);
            let worker = instance.worker() as usize;
            let stage = StagePart::of((&name, &shares), instance, timers.past(), at.time);
            let part = stage.map(|stage| Part {
                time: at.time,
                packets: if worker == 0 { at.packets } else { 0 },
                stages: vec![stage],
                order: 0,
            });
            keep.give(worker, part);
        };
        // Where the run is ending it saves then.
        let _ = group.edit(Edit {
            make: Arc::new(make),
            effect: Effect::Kept,
        });
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
