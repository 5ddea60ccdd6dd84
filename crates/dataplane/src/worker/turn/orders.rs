//! Orders to a worker between two bursts: its state, jobs of the control socket, changes of the chain.

use std::time::{Duration, Instant};

use super::Worker;
use crate::mailbox::{Desk, Job};
use crate::module::ModuleError;
use crate::worker::chain::Chain;
use crate::worker::change::Live;
use crate::worker::keep::Part;
use crate::worker::stage::Stage;
use crate::worker::{Code, Link};

/// How long a worker does not sleep which others are about to wait for.
const AWAKE: Duration = Duration::from_secs(1);

impl Worker {
    /// Its part of the state, between two bursts.
    pub(super) fn part(&mut self) -> Result<Part, ModuleError> {
        // Records are the host's before that.
        self.records();
        let (clock, packets) = match &self.group {
            // All replicas have the same time, and the numbers of all packets are the sequencer's.
            Some(group) if self.number == 0 => (self.row_time(), group.packets()),
            Some(_) => (self.row_time(), 0),
            None => (self.clock, self.received),
        };
        let stages = self.chain.stages.iter_mut();
        Ok(Part {
            time: clock,
            packets,
            stages: stages.map(|s| s.part(clock)).collect::<Result<_, _>>()?,
            order: 0,
        })
    }

    /// Takes up a part of another run's state; `start` is the time of the first packet, ns.
    pub(in crate::worker) fn resume(
        &mut self,
        part: &Part,
        chain: &[Link],
        start: u64,
    ) -> Result<(), ModuleError> {
        self.received = part.packets;
        let start = self.group.as_ref().map_or(start, |group| group.start());
        let shift = part.time.saturating_sub(start);
        let stages = self.chain.stages.iter_mut().zip(chain);
        for ((stage, link), of) in stages.zip(&part.stages) {
            let entries = match &link.code {
                Code::Module(code) => code.config.of_worker(self.number as u32).entries,
                Code::Foreign(_) | Code::Classed(_) => Vec::new(),
            };
            stage.resume(of, &entries, start, shift)?;
        }
        Ok(())
    }

    /// Gives its part while the run goes on, when all other workers give theirs.
    pub(super) fn keep_now(&mut self) {
        let Some(keep) = self.keep.clone() else {
            return;
        };
        if let Some(group) = self.group.clone() {
            // All replicas give theirs at one row.
            if self.number == 0 {
                self.keep_at_row(&keep, &group);
            }
            return;
        }
        self.settle();
        if !keep.meet(self.workers) {
            return;
        }
        let part = self.part();
        keep.give(self.number, part);
        keep.meet(self.workers);
    }

    /// Does what was asked for from outside; mostly there is nothing, which costs one load.
    pub(super) fn attend(&mut self) {
        let Some(mailbox) = &self.mailbox else {
            return;
        };
        for job in mailbox.take() {
            self.perform(job);
        }
    }

    pub(super) fn perform(&mut self, job: Job) {
        self.refresh();
        self.tables();
        let account = || {
            let (tick, age) = (self.rate.ns_per_tick(), self.rate.elapsed());
            self.shared
                .account_of(self.number, &self.each, tick, age.as_secs_f64())
        };
        let clock = self.clock.max(self.queues_time());
        let ((instance, heavy), chain, watch) = if self.sequenced {
            let Chain { stages, watch, .. } = &mut self.chain;
            let first = stages.first_mut();
            let both = first.map_or((None, None), Stage::both);
            (both, None, Some(watch))
        } else {
            let chain = Live {
                chain: &mut self.chain,
                shared: &self.shared,
                clock,
                worker: self.number,
            };
            ((None, None), Some(chain), None)
        };
        let mut desk = Desk {
            worker: self.number,
            instance,
            heavy,
            chain,
            group: self.group.clone(),
            watch,
            ..Desk::stateless(self.clock, &account)
        };
        job(&mut desk);
        let (order, keep, awake) = (desk.order, desk.keep, desk.awake);
        self.awake = awake.then(|| Instant::now() + AWAKE);
        if keep {
            self.keep_now();
        }
        match (order, self.lane()) {
            (Some(order), Some(lane)) => lane.order_end(order),
            // Live ports have no end: what they hold already is taken either way.
            (order, _) => self.ordered |= order.is_some(),
        }
    }
}
