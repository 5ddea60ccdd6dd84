//! Runs a module over captures on several workers, each with a state of its own.
//!
//! One thread reads, decides for each packet who owns it, and writes; the workers run the function. What
//! comes out depends on the packets and on who owns them, and on nothing else: the same run gives the same
//! bytes, whatever the machine does meanwhile.
//!
//! - Time and ingress numbers are given out before packets are parted, as on one core: the program's clock
//!   never runs backwards over the whole input.
//! - A timer fires on every worker, between the packets it lies between in the whole input.
//! - Packets that leave are written by ingress number.
//!
//! Packets are read a window at a time. While the workers have one, the next is read, up to [`AHEAD`] of
//! them; memory is bounded by that.

mod pressure;
mod report;
mod window;
mod worker;

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use millrace_steer::Owners;

use super::tally::{Tally, count};
use super::{IDLE, Progress, Run, Timers, await_first};
use crate::account::{Account, OVERSIZE};
use crate::clock::Rate;
use crate::mailbox::{Mailbox, Order};
use crate::module::{Instance, ModuleError, Shared};
use crate::packet::Arrival;
use crate::place::Stay;
use crate::share::Share;
use pressure::Pressure;
use window::{Batch, Kept, Pool, Step, Window};
use worker::{Orders, Worker};

/// Packets of a window: enough that handing it over costs little, so few that buffers stay small.
const WINDOW: usize = 1024;
/// Windows that are read before the first of them is written.
const AHEAD: usize = 3;

/// Everything that a run on several workers needs.
pub struct Parallel {
    /// what a run on one needs; its mailbox is not used
    pub run: Run,
    /// for each port, who owns the packets that come in there; numbers of workers that do not exist are
    /// taken for the last one
    pub owners: Vec<Owners>,
    /// how each object stands on the workers, in the module's order; those that are missing are copies
    pub shares: Vec<Share>,
    /// how far apart in the packets' time workers may be, ns; none: as far as `AHEAD` windows are. For
    /// workers that share state: what expires is decided by whoever is first
    pub apart: Option<u64>,
    /// how many workers, at least 1
    pub workers: usize,
    /// the processor that each worker is pinned to; fewer than workers: the others are not pinned
    pub cpus: Vec<usize>,
    /// where requests from outside wait, one for each worker
    pub mailboxes: Vec<Arc<Mailbox>>,
}

/// Runs until the inputs end, a limit is reached, an output fails, or `stop` is raised; then drains
/// and accounts.
///
/// Errors of ports do not fail the call: they end the run and stand in the account.
///
/// # Errors
/// [`ModuleError::Create`] when the state cannot be made.
pub fn run_parallel(
    mut parallel: Parallel,
    stop: &AtomicBool,
    observe: &mut dyn FnMut(Progress),
) -> Result<Account, ModuleError> {
    let mailboxes = parallel.mailboxes.clone();
    await_first(&mut parallel.run, &mailboxes, stop);
    let account = Reader::run(parallel, stop, observe);
    // Whoever waits for an answer must not wait for a worker that is no more.
    for mailbox in &mailboxes {
        mailbox.close();
    }
    account
}

/// A worker's thread, as the reader sees it.
struct Line {
    work: Sender<Batch>,
    done: Receiver<Batch>,
}

/// The thread that reads and writes.
struct Reader {
    run: Run,
    owners: Vec<Owners>,
    lines: Vec<Line>,
    pool: Pool,
    timers: Timers,
    /// packets that reached no worker
    tally: Tally,
    /// windows that the workers have
    ahead: VecDeque<Window>,
    apart: u64,
    /// packets read
    read: u64,
    /// the latest stamp so far: the program's clock never runs backwards
    clock: u64,
    orders: Arc<Orders>,
    pressure: Pressure,
    drained: bool,
    /// an output takes no more, or a worker is gone
    failed: bool,
    /// something was written since the outputs were flushed
    unflushed: bool,
}

impl Reader {
    fn run(
        mut parallel: Parallel,
        stop: &AtomicBool,
        observe: &mut dyn FnMut(Progress),
    ) -> Result<Account, ModuleError> {
        let count = parallel.workers.max(1);
        let run = &mut parallel.run;
        let start = run.sources.next().map_or(0, |(record, _)| record.time_ns);
        run.config.time = start;
        let (rate, orders) = (Rate::start(), Arc::new(Orders::default()));
        let mut pressure = Pressure::new(&run.module, &parallel.shares);
        if count == 1 {
            // One worker has the whole.
            pressure = Pressure::new(&run.module, &[]);
        }
        let shares: Arc<[Share]> = match count {
            1 => Arc::default(),
            _ => parallel.shares.as_slice().into(),
        };
        let divided: Vec<_> = pressure.objects().map(|object| (object, 0)).collect();
        let shared = Shared::create(run.module.clone(), &run.config, count as u32)?;
        let mut workers = Vec::new();
        for number in 0..count {
            let cpu = parallel.cpus.get(number).copied();
            let _there = Stay::near(cpu);
            let mailbox = parallel.mailboxes.get(number).cloned();
            let worker = worker(run, &shared, number, cpu, mailbox, &orders)?;
            workers.push(Worker {
                divided: divided.clone(),
                shares: shares.clone(),
                ..worker
            });
        }
        let (mut lines, mut ends) = (Vec::new(), Vec::new());
        for _ in 0..count {
            let ((work, todo), (made, done)) = (channel(), channel());
            lines.push(Line { work, done });
            ends.push((todo, made));
        }
        let mut reader = Self {
            owners: parallel.owners,
            pool: Pool::new(count, run.burst, run.ports.len() as u32, run.layout),
            timers: Timers::new(run.module.timers(), start),
            tally: Tally::new(&run.ports, run.reasons.len()),
            lines,
            ahead: VecDeque::new(),
            apart: parallel.apart.unwrap_or(u64::MAX),
            read: 0,
            clock: start,
            orders,
            pressure,
            drained: false,
            failed: false,
            unflushed: false,
            run: parallel.run,
        };
        let ended = std::thread::scope(|scope| {
            let threads: Vec<_> = workers
                .into_iter()
                .zip(ends)
                .map(|(worker, (todo, made))| scope.spawn(move || worker.work(&todo, &made)))
                .collect();
            reader.work(stop, observe);
            reader.lines.clear();
            let join = threads.into_iter().map(|t| t.join().ok());
            join.collect::<Vec<_>>()
        });
        Ok(reader.report(ended, &shares, &rate))
    }

    fn work(&mut self, stop: &AtomicBool, observe: &mut dyn FnMut(Progress)) {
        let deadline = self.run.time.and_then(|t| Instant::now().checked_add(t));
        loop {
            let order = self.orders.get();
            if order == Some(Order::Drain) && !self.drained {
                self.drained = true;
                self.run.sources.drain();
            }
            let stopped = stop.load(Ordering::Relaxed) || order == Some(Order::Stop);
            let late = deadline.is_some_and(|deadline| Instant::now() >= deadline);
            if stopped || late || self.failed {
                self.tally.account.interrupted = stopped;
                break;
            }
            let (window, over) = self.fill();
            if !window.owners.is_empty() {
                let begin = self.ahead.front().map_or(window.begin, |w| w.begin);
                while !self.ahead.is_empty() && self.clock.saturating_sub(begin) > self.apart {
                    self.collect();
                }
                self.hand_out(window);
                while self.ahead.len() > AHEAD {
                    self.collect();
                }
                observe(Progress {
                    read: self.read,
                    share: self.run.sources.progress(),
                });
            } else if over {
                break;
            } else {
                self.rest();
            }
        }
        while !self.ahead.is_empty() {
            self.collect();
        }
    }

    /// Gathers the next window: up to its size, the end, or what is there now. True at the end.
    fn fill(&mut self) -> (Window, bool) {
        let workers = self.lines.len();
        let homes = self.run.config.homes.clone();
        let mut window = Window {
            begin: 0,
            owners: Vec::with_capacity(WINDOW),
            batches: (0..workers)
                .map(|_| Batch {
                    count: self.pressure.counts(),
                    ..Batch::default()
                })
                .collect(),
        };
        while window.owners.len() < WINDOW && self.run.packets != Some(self.read) {
            let idle = window.owners.is_empty() && self.ahead.is_empty();
            let patience = if idle { IDLE } else { Duration::ZERO };
            if !self.run.sources.ready(patience) {
                self.seal(&mut window);
                return (window, false);
            }
            let Some((record, port)) = self.run.sources.next() else {
                break;
            };
            let time = self.clock.max(record.time_ns);
            if window.owners.is_empty() {
                window.begin = time;
            } else if time.saturating_sub(window.begin) > self.apart {
                break;
            }
            if self.timers.due(time) {
                for (moment, timer) in self.timers.take(time) {
                    for batch in &mut window.batches {
                        batch.steps.push(Step::Fire { timer, moment });
                    }
                }
            }
            self.tally.account.out_of_order += u64::from(record.time_ns < self.clock);
            self.clock = time;
            let arrival = Arrival {
                number: self.read,
                port,
                time,
                stamp: record.time_ns,
                wire: record.original_length,
                home: homes.as_ref().map_or(0, |h| h.of(port, record.data)),
            };
            let owner = self
                .owners
                .get(port as usize)
                .map_or(0, |o| o.owner(record.data));
            let owner = (owner as usize).min(workers.saturating_sub(1));
            self.read += 1;
            let batch = window.batches.get_mut(owner);
            if batch.is_some_and(|b| self.pool.add(b, owner, record.data, arrival)) {
                window.owners.push(owner as u32);
            } else {
                self.tally.account.came(port, record.data.len());
                self.tally
                    .account
                    .became(port, crate::packet::Fate::Dropped(0));
                count(&mut self.tally.other, OVERSIZE);
            }
            self.run.sources.advance();
        }
        self.seal(&mut window);
        let over = window.owners.is_empty();
        (window, over)
    }

    fn seal(&self, window: &mut Window) {
        for batch in &mut window.batches {
            batch.clock = self.clock;
        }
    }

    fn hand_out(&mut self, mut window: Window) {
        for (line, batch) in self.lines.iter().zip(std::mem::take(&mut window.batches)) {
            self.failed |= line.work.send(batch).is_err();
        }
        self.ahead.push_back(window);
    }

    /// Waits for the workers to be through with the oldest window, and writes its packets in order.
    fn collect(&mut self) {
        let Some(mut window) = self.ahead.pop_front() else {
            return;
        };
        for line in &self.lines {
            // A worker that died gives nothing back; its packets are lost, which the report says.
            let batch = line.done.recv();
            self.failed |= batch.is_err();
            window.batches.push(batch.unwrap_or_default());
        }
        // For each worker, the step and the packet in it that come next.
        let mut at = vec![(0, 0); window.batches.len()];
        let ports = self.run.ports.len() as u32;
        for owner in &window.owners {
            let owner = *owner as usize;
            let (Some(batch), Some((step, index))) = (window.batches.get(owner), at.get_mut(owner))
            else {
                continue;
            };
            while let Some(now) = batch.steps.get(*step) {
                if let Step::Burst(burst, leaves) = now
                    && let Some(packet) = burst.outcome(*index)
                {
                    *index += 1;
                    if let Some(fates) = &mut self.run.fates {
                        let commit = burst.commit(*index - 1).unwrap_or(0);
                        let time = burst.time(*index - 1).unwrap_or(packet.arrival.time);
                        let reasons = &self.run.reasons;
                        self.failed |= !fates.write(&packet, owner as u32, (commit, time), reasons);
                    }
                    if let Some(leaves) = leaves.get(*index - 1) {
                        let (sinks, pass) = (&mut self.run.sinks, &mut self.run.pass);
                        self.failed |= !sinks.deliver(*leaves, &packet, ports, pass.as_mut());
                    }
                    break;
                }
                (*step, *index) = (*step + 1, 0);
            }
        }
        self.unflushed = true;
        self.pressure.add(&window.batches);
        let records = window.batches.iter_mut().flat_map(|b| b.records.drain(..));
        let records = records.collect();
        self.write(records);
        for (worker, batch) in window.batches.into_iter().enumerate() {
            self.pool.reclaim(worker, batch.steps);
        }
    }

    /// Writes records, those first that came out first; those after the same packet by worker.
    fn write(&mut self, mut records: Vec<Kept>) {
        records.sort_by_key(|kept| kept.after);
        let Some(writer) = &mut self.run.records else {
            return;
        };
        let objects = self.run.module.objects();
        for kept in records {
            let name = objects
                .get(kept.record.object)
                .map_or("", |o| o.name.as_str());
            self.failed |= !writer.write(name, kept.time, &kept.record);
        }
    }

    /// Nothing has come for a while: what workers and outputs have must not wait for more.
    fn rest(&mut self) {
        while !self.ahead.is_empty() {
            self.collect();
        }
        if std::mem::take(&mut self.unflushed) {
            let sinks = self.run.sinks.sinks.iter_mut().chain(&mut self.run.pass);
            for sink in sinks {
                self.failed |= !sink.flush();
            }
        }
    }
}

fn worker(
    run: &Run,
    shared: &Arc<Shared>,
    number: usize,
    cpu: Option<usize>,
    mailbox: Option<Arc<Mailbox>>,
    orders: &Arc<Orders>,
) -> Result<Worker, ModuleError> {
    let mut tally = Tally::new(&run.ports, run.reasons.len());
    tally.worker.worker = number as u32;
    Ok(Worker {
        instance: Instance::join(&run.config, shared, number as u32)?,
        tally,
        program: run.program,
        prefetch: run.prefetch,
        ports: run.ports.len() as u32,
        has_records: run.module.objects().iter().any(|o| o.records),
        reasons: Arc::new(run.reasons.clone()),
        mailbox,
        orders: orders.clone(),
        cpu,
        clock: run.config.time,
        last: 0,
        alarms: 0,
        rate: Rate::start(),
        records: Vec::new(),
        divided: Vec::new(),
        shares: Arc::default(),
    })
}

#[cfg(test)]
mod tests;
