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

use millrace_steer::Owners;

use super::lane::Lane;
use super::window::{Batch, Kept, Pool, Step, Window};
use super::{FateWriter, IDLE, Parallel, Progress, RecordWriter, Sink, Sinks, Sources, Timers};
use crate::account::Account;
use crate::clock;
use crate::mailbox::Order;
use crate::module::Module;
use crate::packet::{Arrival, MAX_FRAME};
use crate::replica::{Group, Sequencing};
use crate::worker::{Ingress, Link, Windows};

/// Packets of a window of several workers: enough that handing it over costs little, so few that buffers stay small.
const WINDOW: usize = 1024;
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
    Batch(Batch),
    /// nothing now
    Nothing,
    /// nothing any more
    Over,
}

/// A worker's thread, as the sequencer sees it.
struct Line {
    work: Sender<Batch>,
    done: Receiver<Batch>,
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
    owners: Vec<Owners>,
    /// numbers packets and sprays them, where state is replicated
    replicas: Option<Sequencing>,
    workers: usize,
    lines: Vec<Line>,
    pool: Pool,
    timers: Timers,
    /// counts of packets that reach no worker
    ingress: Arc<Ingress>,
    /// windows that the workers have
    ahead: VecDeque<Window>,
    /// while one is written, where each worker's next packet is
    places: Vec<Place>,
    /// packets of a window
    window: usize,
    apart: u64,
    /// stop after this many packets
    packets: Option<u64>,
    read: u64,
    /// packets that earlier runs have read
    before: u64,
    /// the latest stamp so far: the program's clock never runs backwards
    clock: u64,
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
        parallel: Parallel,
        chain: &[Link],
        ingress: &Arc<Ingress>,
        start: u64,
        (commits, replicas): (bool, Option<Sequencing>),
    ) -> Self {
        let run = parallel.run;
        let begin = run.keep.as_ref().map_or(&[][..], |keep| &keep.begin);
        let timers = begin.first().and_then(|part| {
            let (since, past) = &part.stages.first()?.timers;
            let shift = part.time.saturating_sub(start);
            let since = since.saturating_sub(shift);
            Some(Timers::resumed(run.module.timers(), since, past, start))
        });
        let timers = match &replicas {
            None => timers.unwrap_or_else(|| Timers::new(run.module.timers(), start)),
            // They fire at heartbeats.
            Some(_) => Timers::new(&[], start),
        };
        let before = begin
            .iter()
            .map(|part| part.packets)
            .fold(0, u64::wrapping_add);
        let workers = parallel.workers.max(1);
        let ports = ingress.ports() as u32;
        Self {
            timers,
            before,
            pressure: Windows::new(chain, workers),
            pool: Pool::new(workers, run.burst, ports, run.layout),
            window: if workers == 1 { run.burst } else { WINDOW },
            module: run.module,
            sources: run.sources,
            sinks: run.sinks,
            pass: run.pass,
            records: run.records,
            fates: run.fates,
            reasons: run.reasons,
            ports,
            commits,
            owners: parallel.owners,
            replicas,
            workers,
            lines: Vec::new(),
            ingress: ingress.clone(),
            ahead: VecDeque::new(),
            places: Vec::new(),
            apart: parallel.apart.unwrap_or(u64::MAX),
            packets: run.packets,
            read: 0,
            clock: start,
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
        self.replicas.as_ref().map(|r| r.group().clone())
    }

    /// The latest stamp so far, ns.
    pub fn clock(&self) -> u64 {
        self.clock
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
            read: self.read,
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
                while !self.ahead.is_empty() && self.clock.saturating_sub(begin) > self.apart {
                    self.await_oldest();
                }
                self.hand_out(window);
                while self.ahead.len() > AHEAD {
                    self.await_oldest();
                }
                observe(self.progress());
                continue;
            }
            self.pool.reclaim(window);
            if over {
                break;
            }
            self.rest();
        }
        self.last_beat();
        while !self.ahead.is_empty() {
            self.await_oldest();
        }
        self.lines.clear();
    }

    /// Replicas do what is due at the end, and have all rows then.
    fn last_beat(&mut self) {
        let Some(replicas) = &mut self.replicas else {
            return;
        };
        let group = replicas.group().clone();
        // No edit gets a number behind this one.
        group.close();
        if replicas.last(self.clock).is_err() {
            return;
        }
        let mut window = self.pool.window(self.pressure.counts());
        window.begin = self.clock;
        window.beats = true;
        self.sequence_to(&mut window);
        self.hand_out(window);
    }

    /// Says in a window how far its rows go, and shows them to the replicas.
    fn sequence_to(&mut self, window: &mut Window) {
        let Some(replicas) = &self.replicas else {
            return;
        };
        replicas.publish();
        for batch in &mut window.batches {
            batch.clock = self.clock;
            batch.upto = replicas.sequence();
        }
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
        self.pool.reclaim(window);
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
        !(self.interrupted || self.expired || self.failed)
    }

    /// Gathers the next window: up to its size, the end, or what is there now. True when nothing more comes.
    fn fill(&mut self) -> (Window, bool) {
        let mut window = self.pool.window(self.pressure.counts());
        let mut over = true;
        if let Some(replicas) = &mut self.replicas {
            // Edits from outside, before the next packet.
            let before = replicas.sequence();
            window.begin = self.clock;
            window.beats = replicas.edits(self.clock).is_ok_and(|now| now > before);
        }
        while window.packets < self.window && self.packets != Some(self.read) {
            let idle = window.packets == 0 && self.ahead.is_empty();
            let patience = if idle { IDLE } else { Duration::ZERO };
            if !self.sources.ready(patience) {
                over = false;
                break;
            }
            let Some((record, port)) = self.sources.next() else {
                break;
            };
            let time = self.clock.max(record.time_ns);
            if window.packets == 0 {
                window.begin = time;
            } else if time.saturating_sub(window.begin) > self.apart {
                break;
            }
            if self.timers.due(time) {
                // A burst of the only worker ends where a timer is due.
                if self.workers == 1 && window.packets > 0 {
                    break;
                }
                self.timers.pass(time);
                for batch in &mut window.batches {
                    batch.steps.push(Step::Mark(time));
                }
            }
            if record.time_ns < self.clock {
                self.ingress.late();
            }
            self.clock = time;
            let mut arrival = Arrival {
                number: self.before.wrapping_add(self.read),
                port,
                time,
                stamp: record.time_ns,
                wire: record.original_length,
                home: 0,
                place: 0,
            };
            let owner = match (&mut self.replicas, self.workers) {
                (None, 1) => 0,
                // What is longer no function takes: it has no place among the packets.
                (Some(replicas), _) if record.data.len() <= MAX_FRAME => {
                    let looked = replicas.look(record.data, port, time);
                    let placed = looked
                        .and_then(|()| replicas.packet(record.data, port, arrival.number, time));
                    let Ok((place, owner)) = placed else {
                        // There is no number left.
                        self.failed = true;
                        break;
                    };
                    arrival.place = place.word();
                    owner as usize
                }
                (_, workers) => {
                    let owners = self.owners.get(port as usize);
                    let owner = owners.map_or(0, |o| o.owner(record.data));
                    (owner as usize).min(workers - 1)
                }
            };
            self.read += 1;
            let batch = window.batches.get_mut(owner);
            if batch.is_some_and(|b| self.pool.add(b, owner, record.data, arrival)) {
                window.came(owner as u32);
            } else {
                self.ingress.oversize(port, record.data.len());
            }
            self.sources.advance();
        }
        for batch in &mut window.batches {
            batch.clock = self.clock;
        }
        self.sequence_to(&mut window);
        (window, over)
    }

    fn hand_out(&mut self, mut window: Window) {
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
    pub fn collect(&mut self, batch: Batch) {
        let Some(mut window) = self.ahead.pop_front() else {
            return;
        };
        window.batches.push(batch);
        self.write(window);
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
    fn write(&mut self, mut window: Window) {
        self.places.clear();
        self.places.resize(window.batches.len(), Place::default());
        for (owner, packets) in &window.rows {
            if let Some(batch) = window.batches.get(*owner as usize) {
                self.write_row(batch, *owner, *packets);
            }
        }
        self.unflushed = true;
        self.pressure.add(&window.batches);
        let records = window.batches.iter_mut().flat_map(|b| b.records.drain(..));
        let records = records.collect();
        self.write_records(records);
        self.pool.reclaim(window);
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
                        let arrived = (0, packet.arrival.time);
                        let said = burst.commit(index).zip(burst.time(index));
                        let order = said.filter(|_| self.commits).unwrap_or(arrived);
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
        if let Some(replicas) = &self.replicas {
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
        account.memory.takes(self.pool.bytes() + bytes);
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
