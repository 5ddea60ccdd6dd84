//! The sequencer of a run over captures: it reads, says for each packet when it came and who has it, and writes what
//! leaves.
//!
//! What comes out depends on the packets and on who has them, and on nothing else: the same run gives the same bytes,
//! whatever the machine does meanwhile.
//!
//! - Time and ingress numbers are given out before packets are parted: the program's clock never runs backwards over
//!   the whole input.
//! - Every worker learns where timers are due ([`Step::Mark`]), so that they fire between the packets they lie between
//!   in the whole input.
//! - Packets that leave are written by ingress number.
//!
//! Packets are read a window at a time. The only worker has the sequencer in its queue: a window is a burst, and
//! written before the next is read. Several work on windows while the next are read, up to [`AHEAD`] of them; memory
//! is bounded by that.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use super::lane::Lane;
use super::window::{Batch, Kept, Step, Window};
use super::{FateWriter, Intake, Parallel, Progress, RecordWriter, Sink, Sinks, Sources};
use crate::account::Account;
use crate::clock;
use crate::mailbox::Order;
use crate::module::Module;
use crate::replica::{Group, Sequencing};
use crate::worker::{Ingress, Link, Windows};

/// Windows that are read before the first of them is written.
const AHEAD: usize = 3;
/// How long what was written may wait in this process.
const FLUSH: Duration = Duration::from_millis(100);
/// Ticks of the processor between two looks at the clock for that, a few milliseconds: asking for the time of each burst costs
/// as much as a packet.
const LOOK: u64 = 4_000_000;

/// Orders from outside, by whichever worker heard them.
#[derive(Default)]
pub struct Orders(AtomicU8);

impl Orders {
    /// Notes one.
    pub fn give(&self, order: Order) {
        // A stop is more than a drain.
        self.0.fetch_max(order as u8 + 1, Ordering::Relaxed);
    }

    /// What was asked for so far.
    fn get(&self) -> Option<Order> {
        match self.0.load(Ordering::Relaxed) {
            0 => None,
            n if n == Order::Drain as u8 + 1 => Some(Order::Drain),
            _ => Some(Order::Stop),
        }
    }
}

/// What the only worker's queue gets.
pub enum Next {
    /// something to do
    Batch(Box<Batch>),
    /// nothing now
    Nothing,
    /// nothing any more
    Over,
}

/// A worker's thread, as the sequencer sees it.
struct Line {
    work: Sender<Box<Batch>>,
    done: Receiver<Box<Batch>>,
}

/// A place in what a worker has of a window.
#[derive(Clone, Default)]
struct Place {
    step: usize,
    /// in the step
    packet: usize,
}

/// What reads and writes.
pub struct Sequencer {
    module: Arc<Module>,
    sources: Sources,
    sinks: Sinks,
    pass: Option<Sink>,
    records: Option<RecordWriter>,
    fates: Option<FateWriter>,
    reasons: Vec<String>,
    /// how many ports the function has
    ports: u32,
    /// whether fates tell in which order workers could have run all packets
    commits: bool,
    /// what gathers windows
    intake: Intake,
    workers: usize,
    lines: Vec<Line>,
    /// windows that the workers have
    ahead: VecDeque<Box<Window>>,
    /// while one is written, where each worker's next packet is
    places: Vec<Place>,
    orders: Arc<Orders>,
    pressure: Windows,
    drained: bool,
    expired: bool,
    /// an output takes no more, or a worker is gone
    failed: bool,
    interrupted: bool,
    /// something was written since the outputs were flushed
    unflushed: bool,
    /// when they were
    flushed: Instant,
    /// when somebody last asked how long ago that is, in ticks
    looked: u64,
}

impl Sequencer {
    /// Over the inputs of a run of `chain`, which stand on their first packets; that of the first is `start`, ns.
    /// `commits`: its fates say in which order workers could have run all packets.
    pub fn new(
        mut parallel: Parallel,
        chain: &[Link],
        ingress: &Arc<Ingress>,
        start: u64,
        (commits, replicas): (bool, Option<Sequencing>),
    ) -> Self {
        let intake = Intake::new(&mut parallel, ingress, start, replicas);
        let run = parallel.run;
        let workers = parallel.workers.max(1);
        Self {
            intake,
            pressure: Windows::new(chain, workers),
            module: run.module,
            sources: run.sources,
            sinks: run.sinks,
            pass: run.pass,
            records: run.records,
            fates: run.fates,
            reasons: run.reasons,
            ports: ingress.ports() as u32,
            commits,
            workers,
            lines: Vec::new(),
            ahead: VecDeque::new(),
            places: Vec::new(),
            orders: Arc::default(),
            drained: false,
            expired: false,
            failed: false,
            interrupted: false,
            unflushed: false,
            flushed: Instant::now(),
            looked: 0,
        }
    }

    /// The queues of several workers, on threads of their own; of one worker see [`Lane::alone`].
    pub fn lanes(&mut self) -> Vec<Lane> {
        let mut lanes = Vec::new();
        for _ in (0..self.workers).filter(|_| self.workers > 1) {
            let ((work, todo), (made, done)) = (channel(), channel());
            self.lines.push(Line { work, done });
            lanes.push(Lane::of(self, todo, made));
        }
        lanes
    }

    /// What the replicas have in common, where state is replicated.
    pub fn group(&self) -> Option<Arc<Group>> {
        let replicas = self.intake.replicas.as_ref();
        replicas.map(|r| r.group().clone())
    }

    /// The latest stamp so far, ns.
    pub fn clock(&self) -> u64 {
        self.intake.clock
    }

    /// Where orders are left.
    pub fn orders(&self) -> Arc<Orders> {
        self.orders.clone()
    }

    /// Time is up.
    pub fn expire(&mut self) {
        self.expired = true;
    }

    /// How far it is.
    pub fn progress(&self) -> Progress {
        Progress {
            read: self.intake.read,
            share: self.sources.progress(),
        }
    }

    /// Feeds several workers until all is read and written, and they are let go.
    pub fn work(
        &mut self,
        stop: &AtomicBool,
        deadline: Option<Instant>,
        observe: &mut dyn FnMut(Progress),
    ) {
        loop {
            if stop.load(Ordering::Relaxed) {
                self.orders.give(Order::Stop);
            }
            self.expired |= deadline.is_some_and(|deadline| Instant::now() >= deadline);
            if !self.goes_on() {
                break;
            }
            let (window, over) = self.fill();
            if !window.is_empty() {
                let begin = self.ahead.front().map_or(window.begin, |w| w.begin);
                while !self.ahead.is_empty()
                    && self.intake.clock.saturating_sub(begin) > self.intake.apart()
                {
                    self.await_oldest();
                }
                self.hand_out(window);
                while self.ahead.len() > AHEAD {
                    self.await_oldest();
                }
                observe(self.progress());
                continue;
            }
            self.intake.pool.reclaim(window);
            if over {
                break;
            }
            self.rest();
        }
        if let Some(window) = self.intake.last_beat(self.pressure.counts()) {
            self.hand_out(window);
        }
        while !self.ahead.is_empty() {
            self.await_oldest();
        }
        self.lines.clear();
    }

    /// What the only worker does next.
    pub fn next(&mut self) -> Next {
        if !self.goes_on() {
            return Next::Over;
        }
        let (mut window, over) = self.fill();
        if !window.is_empty()
            && let Some(batch) = window.batches.pop()
        {
            self.ahead.push_back(window);
            return Next::Batch(batch);
        }
        self.intake.pool.reclaim(window);
        if over {
            return Next::Over;
        }
        self.rest();
        Next::Nothing
    }

    /// Whether anything more is to be read.
    fn goes_on(&mut self) -> bool {
        let order = self.orders.get();
        if order == Some(Order::Drain) && !self.drained {
            self.drained = true;
            self.sources.drain();
        }
        self.interrupted = order == Some(Order::Stop);
        !(self.interrupted || self.expired || self.failed || self.intake.failed)
    }

    /// Gathers the next window: up to its size, the end, or what is there now. True when nothing more comes.
    fn fill(&mut self) -> (Box<Window>, bool) {
        self.intake.begin(self.pressure.counts());
        let over = self.sources.pour(&mut self.intake, self.ahead.is_empty());
        (self.intake.end(), over)
    }

    fn hand_out(&mut self, mut window: Box<Window>) {
        for (line, batch) in self.lines.iter().zip(window.batches.drain(..)) {
            self.failed |= line.work.send(batch).is_err();
        }
        self.ahead.push_back(window);
    }

    /// Waits for the workers to be through with the oldest window, and writes it.
    fn await_oldest(&mut self) {
        let Some(mut window) = self.ahead.pop_front() else {
            return;
        };
        for line in &self.lines {
            // A worker that died gives nothing back; its packets are lost, which the report says.
            let batch = line.done.recv();
            self.failed |= batch.is_err();
            window.batches.push(batch.unwrap_or_default());
        }
        self.write(window);
    }

    /// Takes the oldest window back from the only worker, and writes it.
    pub fn collect(&mut self, batch: Box<Batch>) {
        let Some(mut window) = self.ahead.pop_front() else {
            return;
        };
        window.batches.push(batch);
        self.write(window);
        if !self.unflushed {
            return;
        }
        // If the next packet never ends, what went before is in the outputs.
        let ticks = clock::ticks();
        if ticks.wrapping_sub(self.looked) >= LOOK {
            self.looked = ticks;
            if self.flushed.elapsed() >= FLUSH {
                self.flush();
            }
        }
    }

    /// Writes what leaves of a window in the order in which its packets came.
    fn write(&mut self, mut window: Box<Window>) {
        if self.fates.is_some() || self.pass.is_some() || !self.sinks.sinks.is_empty() {
            self.places.clear();
            self.places.resize(window.batches.len(), Place::default());
            for (owner, packets) in &window.rows {
                if let Some(batch) = window.batches.get(*owner as usize) {
                    self.write_row(batch, *owner, *packets);
                }
            }
            self.unflushed = true;
        }
        self.pressure.add(&window.batches);
        if window.batches.iter().any(|b| !b.records.is_empty()) {
            let records = window.batches.iter_mut().flat_map(|b| b.records.drain(..));
            let records = records.collect();
            self.write_records(records);
        }
        self.intake.pool.reclaim(window);
    }

    /// Writes what leaves of a worker's next packets, this many.
    fn write_row(&mut self, batch: &Batch, worker: u32, mut count: usize) {
        let Some(place) = self.places.get_mut(worker as usize) else {
            return;
        };
        while count > 0
            && let Some(step) = batch.steps.get(place.step)
        {
            let mut left = 0;
            if let Step::Burst(burst) = step {
                left = burst.len().saturating_sub(place.packet);
                let begin = place.packet;
                place.packet += left.min(count);
                for index in begin..place.packet {
                    let Some(packet) = burst.outcome(index) else {
                        continue;
                    };
                    if let Some(fates) = &mut self.fates {
                        let commit = burst.commit(index).filter(|_| self.commits);
                        let order = (commit.unwrap_or(0), burst.time(index).unwrap_or(0));
                        self.failed |= !fates.write(&packet, worker, order, &self.reasons);
                    }
                    self.failed |= !self.sinks.deliver(&packet, self.ports, self.pass.as_mut());
                }
            }
            if left <= count {
                *place = Place {
                    step: place.step + 1,
                    ..Place::default()
                };
            }
            count -= left.min(count);
        }
    }

    /// Writes records, those first that came out first; those after the same packet by worker.
    fn write_records(&mut self, mut records: Vec<Kept>) {
        records.sort_by_key(|kept| kept.after);
        let Some(writer) = &mut self.records else {
            return;
        };
        let objects = self.module.objects();
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
            self.await_oldest();
        }
        self.flush();
    }

    fn flush(&mut self) {
        self.flushed = Instant::now();
        if std::mem::take(&mut self.unflushed) {
            let sinks = self.sinks.sinks.iter_mut().chain(&mut self.pass);
            for sink in sinks {
                self.failed |= !sink.flush();
            }
        }
    }

    /// Completes the outputs, and the account of the workers with what they are not told: what became of inputs and
    /// outputs. `records` came out after the last window.
    pub fn complete(mut self, records: Vec<Kept>, account: &mut Account) {
        self.write_records(records);
        if let Some(replicas) = &self.intake.replicas {
            account.elephants = replicas.elephants().map(<[_]>::to_vec);
        }
        account.interrupted = self.interrupted;
        let entries = |object: usize| account.objects.get(object).and_then(|o| o.entries);
        self.pressure.finish(entries);
        for (name, times) in std::mem::take(&mut self.pressure.relaxations) {
            *account.relaxations.entry(name).or_default() += times;
        }
        let sinks = self.sinks.sinks.iter().chain(&self.pass);
        let bytes = self.sources.bytes() + sinks.map(Sink::bytes).sum::<u64>();
        account.memory.takes(self.intake.pool.bytes() + bytes);
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
        let fates = self.fates.and_then(FateWriter::finish);
        account.errors.extend(records.into_iter().chain(fates));
    }
}
