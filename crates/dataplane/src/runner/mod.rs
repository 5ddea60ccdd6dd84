//! Runs a module between ports: one worker, to completion.
//!
//! Packets are read in the order of their stamps, gathered into bursts, given to the module, and
//! delivered in the same order. A burst is cut where a timer is due, so that the timer fires between
//! the packets it lies between. Time is the packets' own: a run over the same captures gives the same
//! output whatever the burst size and the speed of the machine.

mod fates;
mod parallel;
mod sinks;
mod sources;
mod tally;
mod timers;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

pub use fates::FateWriter;
pub use parallel::{Parallel, run_parallel};
pub use sinks::{RecordWriter, Sink, Sinks, hex};
pub use sources::{Entry, Sources};
use tally::Tally;
pub use timers::Timers;

use crate::account::{Account, OVERSIZE, ObjectAccount};
use crate::clock::Rate;
use crate::mailbox::{Desk, Job, Mailbox, Order};
use crate::memory::Memory;
use crate::module::{Config, Instance, Module, ModuleError};
use crate::packet::{Arrival, Burst, Fate, Layout};

/// The burst size that is best on most functions: below, prefetching has too little to overlap;
/// above, what it fetched is evicted again.
pub const BURST: usize = 32;

/// Everything that a run needs.
pub struct Run {
    /// the function
    pub module: Arc<Module>,
    /// its state at start; `time` is set to that of the first packet
    pub config: Config,
    /// which packet entry to run
    pub program: usize,
    /// whether to use the prefetching passes
    pub prefetch: bool,
    /// packets
    pub sources: Sources,
    /// names of the function's ports, at least one
    pub ports: Vec<String>,
    /// where they lead
    pub sinks: Sinks,
    /// where packets for the host's own stack go, if anywhere
    pub pass: Option<Sink>,
    /// where records go, if anywhere
    pub records: Option<RecordWriter>,
    /// where the fate of each packet goes, if anywhere
    pub fates: Option<FateWriter>,
    /// names of the drop reasons, by index
    pub reasons: Vec<String>,
    /// packets a burst, 1 to [`crate::packet::MAX_BURST`]
    pub burst: usize,
    /// how buffers are laid out
    pub layout: Layout,
    /// stop after this many packets
    pub packets: Option<u64>,
    /// stop after this much time
    pub time: Option<Duration>,
    /// memory that the program's objects take, as predicted from their declarations, bytes
    pub objects_bytes: u64,
    /// where requests from outside wait for the moment between two bursts
    pub mailbox: Option<Arc<Mailbox>>,
    /// what is done with the state at the end, after `ON_STOP`
    pub at_end: Option<Job>,
}

/// What an observer sees now and then.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    /// packets read
    pub read: u64,
    /// how far the inputs are, 0 to 1; none when that cannot be known
    pub share: Option<f64>,
}

/// Bursts between two looks at the observer: often enough to move smoothly, seldom enough to be free.
const OBSERVE: u64 = 512;

/// How long what was written may wait in this process.
const FLUSH: Duration = Duration::from_millis(100);

/// How long a worker without packets waits for some before it looks at requests and signals again.
const IDLE: Duration = Duration::from_millis(5);

/// Runs until the inputs end, a limit is reached, an output fails, or `stop` is raised; then drains
/// and accounts.
///
/// Errors of ports do not fail the call: they end the run and stand in the account, which is complete
/// up to there.
///
/// # Errors
/// [`ModuleError::Create`] when the state cannot be made.
pub fn run(
    mut run: Run,
    stop: &AtomicBool,
    observe: &mut dyn FnMut(Progress),
) -> Result<Account, ModuleError> {
    let mailbox = run.mailbox.clone();
    await_first(&mut run, mailbox.as_slice(), stop);
    let account = Worker::new(run).and_then(|worker| worker.work(stop, observe));
    // Whoever waits for an answer must not wait for a worker that is no more.
    if let Some(mailbox) = mailbox {
        mailbox.close();
    }
    account
}

/// Waits for the first packet, whose time the state begins with. Requests are answered all the same,
/// without a state.
fn await_first(run: &mut Run, mailboxes: &[Arc<Mailbox>], stop: &AtomicBool) {
    let deadline = run.time.and_then(|time| Instant::now().checked_add(time));
    while !run.sources.ready(IDLE) {
        for job in mailboxes.iter().flat_map(|m| m.take()) {
            let mut desk = Desk {
                instance: None,
                chain: None,
                others: Vec::new(),
                now: 0,
                account: &Account::default,
                order: None,
            };
            job(&mut desk);
            if desk.order.is_some() {
                run.sources.drain();
            }
        }
        let late = deadline.is_some_and(|deadline| Instant::now() >= deadline);
        if late || stop.load(Ordering::Relaxed) {
            run.sources.drain();
        }
    }
}

struct Worker {
    run: Run,
    instance: Instance,
    timers: Timers,
    burst: Burst,
    tally: Tally,
    /// the latest stamp so far: the program's clock never runs backwards
    clock: u64,
    /// an output takes no more
    failed: bool,
    /// asked to stop from outside
    ordered: bool,
    /// something was written since the outputs were flushed
    unflushed: bool,
    /// when they were
    flushed: Instant,
    /// how many firings of maps' timers the tally has
    alarms: u64,
}

impl Worker {
    fn new(mut run: Run) -> Result<Self, ModuleError> {
        let start = run.sources.next().map_or(0, |(record, _)| record.time_ns);
        run.config.time = start;
        let instance = Instance::create(run.module.clone(), &run.config)?;
        Ok(Self {
            timers: Timers::new(run.module.timers(), start),
            burst: Burst::new(run.burst, run.ports.len() as u32, run.layout),
            tally: Tally::new(&run.ports, run.reasons.len()),
            clock: start,
            failed: false,
            ordered: false,
            unflushed: false,
            flushed: Instant::now(),
            alarms: 0,
            instance,
            run,
        })
    }

    fn work(
        mut self,
        stop: &AtomicBool,
        observe: &mut dyn FnMut(Progress),
    ) -> Result<Account, ModuleError> {
        let rate = Rate::start();
        let deadline = self
            .run
            .time
            .and_then(|time| Instant::now().checked_add(time));
        self.instance.start(self.clock);
        self.drain_records();
        loop {
            self.attend(&rate);
            let stopped = stop.load(Ordering::Relaxed) || self.ordered;
            let late = deadline.is_some_and(|deadline| Instant::now() >= deadline);
            if stopped || late || self.failed {
                self.tally.account.interrupted = stopped;
                break;
            }
            let over = self.fill();
            if self.burst.is_empty() {
                if over {
                    break;
                }
                self.rest();
                continue;
            }
            self.call();
            self.deliver();
            self.unflushed = true;
            self.drain_records();
            // If the next packet never ends, what went before is in the outputs.
            if self.flushed.elapsed() >= FLUSH {
                self.rest();
            }
            if self.tally.worker.bursts.is_multiple_of(OBSERVE) {
                observe(Progress {
                    read: self.tally.account.read,
                    share: self.run.sources.progress(),
                });
            }
        }
        self.instance.stop(self.clock);
        self.drain_records();
        if let Some(job) = self.run.at_end.take() {
            self.perform(job, &rate);
        }
        Ok(self.report(&rate))
    }

    /// Does what was asked for from outside; mostly there is nothing, which costs one load.
    fn attend(&mut self, rate: &Rate) {
        let Some(mailbox) = &self.run.mailbox else {
            return;
        };
        for job in mailbox.take() {
            self.perform(job, rate);
        }
    }

    fn perform(&mut self, job: Job, rate: &Rate) {
        let (tally, reasons) = (&self.tally, &self.run.reasons);
        let mut desk = Desk {
            instance: Some(&mut self.instance),
            chain: None,
            others: Vec::new(),
            now: self.clock,
            account: &|| tally.account(reasons, rate),
            order: None,
        };
        job(&mut desk);
        match desk.order {
            Some(Order::Stop) => self.ordered = true,
            Some(Order::Drain) => self.run.sources.drain(),
            None => {}
        }
    }

    /// Gathers the next burst: up to its size, the next timer, the end, or what is there now. True at
    /// the end.
    fn fill(&mut self) -> bool {
        self.burst.clear();
        while !self.burst.is_full() && self.run.packets != Some(self.tally.account.read) {
            let patience = if self.burst.is_empty() {
                IDLE
            } else {
                Duration::ZERO
            };
            if !self.run.sources.ready(patience) {
                return false;
            }
            let Some((record, port)) = self.run.sources.next() else {
                break;
            };
            let time = self.clock.max(record.time_ns);
            if self.timers.due(time) {
                if !self.burst.is_empty() {
                    break;
                }
                for (moment, timer) in self.timers.take(time) {
                    self.instance.fire(timer, moment);
                    self.tally.account.timers_fired += 1;
                }
            }
            self.tally.account.out_of_order += u64::from(record.time_ns < self.clock);
            self.clock = time;
            let arrival = Arrival {
                number: self.tally.account.read,
                port,
                time,
                stamp: record.time_ns,
                wire: record.original_length,
                home: 0,
            };
            self.tally.account.came(port, record.data.len());
            if !self.burst.push(record.data, arrival) {
                self.tally.account.became(port, Fate::Dropped(0));
                tally::count(&mut self.tally.other, OVERSIZE);
            }
            self.run.sources.advance();
        }
        self.burst.is_empty()
    }

    /// What outputs have gathered must not wait for more: nothing has come for a while, or it has waited long enough.
    fn rest(&mut self) {
        self.flushed = Instant::now();
        if std::mem::take(&mut self.unflushed) {
            let sinks = self.run.sinks.sinks.iter_mut().chain(&mut self.run.pass);
            for sink in sinks {
                self.failed |= !sink.flush();
            }
        }
    }

    /// Runs the function over the burst, and measures nothing but that.
    fn call(&mut self) {
        let took = self
            .instance
            .burst(self.run.program, self.run.prefetch, &mut self.burst);
        let packets = self.burst.len() as u64;
        self.tally.burst(took, packets);
        let fired = self.instance.alarms_fired();
        self.tally.account.timers_fired += fired.saturating_sub(self.alarms);
        self.alarms = fired;
    }

    /// Does with each packet what the function said, in the order they came.
    fn deliver(&mut self) {
        let ports = self.run.ports.len() as u32;
        for index in 0..self.burst.len() {
            let Some(packet) = self.burst.outcome(index) else {
                continue;
            };
            let leaves = self.tally.settle(&packet, ports);
            if let Some(fates) = &mut self.run.fates {
                self.failed |=
                    !fates.write(&packet, 0, (0, packet.arrival.time), &self.run.reasons);
            }
            let (sinks, pass) = (&mut self.run.sinks, &mut self.run.pass);
            self.failed |= !sinks.deliver(leaves, &packet, ports, pass.as_mut());
        }
    }

    fn drain_records(&mut self) {
        let objects = self.run.module.objects();
        if !objects.iter().any(|o| o.records) {
            return;
        }
        let (run, account, clock) = (&mut self.run.records, &mut self.tally.account, self.clock);
        let mut whole = true;
        self.instance.drain(|record| {
            let name = objects.get(record.object).map_or("", |o| o.name.as_str());
            tally::count(&mut account.records, name);
            if let Some(writer) = run {
                whole &= writer.write(name, clock, &record);
            }
        });
        self.failed |= !whole;
    }

    /// Completes the outputs and the account.
    fn report(mut self, rate: &Rate) -> Account {
        let objects = self.run.module.objects();
        for (index, object) in objects.iter().enumerate() {
            self.tally.account.objects.push(ObjectAccount {
                name: object.name.clone(),
                kind: object.kind.name.to_owned(),
                entries: self.instance.count(index, self.clock),
                capacity: object.capacity,
                bytes: object.bytes,
                by_worker: Vec::new(),
                full_by_worker: Vec::new(),
            });
        }
        let mut account = self.tally.account(&self.run.reasons, rate);
        let (state, buffers) = (self.run.objects_bytes, Burst::bytes(self.run.burst));
        let bytes = self.run.complete(&mut account);
        account.memory = Memory::predict(state, buffers + bytes).measured();
        account
    }
}

impl Run {
    /// Completes the outputs, and the account with what went wrong in them and in the inputs. The bytes of
    /// memory that inputs and outputs kept.
    fn complete(self, account: &mut Account) -> u64 {
        let sinks = self.sinks.sinks.iter().chain(&self.pass);
        let bytes = self.sources.bytes() + sinks.map(Sink::bytes).sum::<u64>();
        for failure in self.sources.failures {
            account.errors.push(failure.into());
        }
        let sinks = self.sinks.sinks.into_iter().map(|s| (s, true));
        for (sink, counts) in sinks.chain(self.pass.map(|s| (s, false))) {
            let (output, failure) = sink.finish();
            if counts {
                account.written += output.packets;
            }
            account.outputs.push(output);
            account.errors.extend(failure);
        }
        let records = self.records.and_then(RecordWriter::finish);
        account.errors.extend(records);
        account
            .errors
            .extend(self.fates.and_then(FateWriter::finish));
        bytes
    }
}

#[cfg(test)]
mod tests;
