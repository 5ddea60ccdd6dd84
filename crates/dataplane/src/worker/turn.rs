//! The loop of one worker: receive, run to completion, send, give back.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::chain::Chain;
use super::change::Live;
use super::counters::{OfPort, OfQueue, OfStage, Once};
use super::deliver::{Count, Delivery, Wiring};
use super::entries::Entries;
use super::keep::{Keep, Part};
use super::made::Made;
use super::pressure::Seen;
use super::stage::Stage;
use super::{Code, Link, Shared, wait};
use crate::account::Failure;
use crate::clock::{Rate, now};
use crate::histogram::Histogram;
use crate::mailbox::{Desk, Job, Mailbox, Order};
use crate::module::{Homes, ModuleError, abi};
use crate::port::{Frame, PortError, Queue};
use crate::replica::Group;
use crate::runner::{Lane, Progress};

/// Turns without a packet before a worker sleeps until its ports have something: long enough that a
/// steady stream never makes it sleep.
const PATIENCE: u32 = 256;
/// The longest sleep: how late a worker may notice that it should stop.
const NAP: Duration = Duration::from_millis(20);
/// How long a worker waits at the end for its last packets to leave.
pub(super) const DRAIN: Duration = Duration::from_millis(500);
/// How long an element may take at the end to send what it has gathered.
const GATHER: Duration = Duration::from_millis(100);
/// Turns after closing its ports in which a worker takes what the devices had already delivered.
const LAST_TURNS: u32 = 4096;
/// Time between two looks at how full the objects are.
const TABLES: Duration = Duration::from_millis(100);
/// Turns between two looks at the ports' own counts.
const REFRESH: u32 = 1024;

/// A queue and what became of it.
pub struct Served {
    /// the queue
    pub queue: Box<dyn Queue>,
    /// it failed: nothing more is asked of it
    pub failed: bool,
}

/// One worker.
pub struct Worker {
    pub(super) number: usize,
    pub(super) workers: usize,
    pub(super) shared: Arc<Shared>,
    pub(super) chain: Chain,
    pub(super) queues: Vec<Served>,
    pub(super) wiring: Wiring,
    pub(super) burst: usize,
    /// packets that all workers together may still take
    pub(super) limit: Option<u64>,
    pub(super) clock: u64,
    pub(super) delivery: Delivery,
    /// what functions send of their own
    pub(super) made: Made,
    pub(super) frames: Vec<Frame>,
    /// scratch: frames that go back
    pub(super) back: Vec<Frame>,
    pub(super) descriptors: Vec<abi::Packet>,
    pub(super) received: u64,
    pub(super) each: Histogram,
    pub(super) failures: Vec<Failure>,
    /// never sleep
    pub(super) busy: bool,
    /// where requests from outside wait
    pub(super) mailbox: Option<Arc<Mailbox>>,
    /// when it says next how full its objects are
    pub(super) next_tables: Instant,
    /// what it knows of its parts of divided objects
    pub(super) seen: Seen,
    /// where packets come home, if the first function goes by that
    pub(super) homes: Option<Arc<Homes>>,
    /// under which entry of the indirection table its packets come
    pub(super) entries: Option<Entries>,
    pub(super) rate: Rate,
    /// somebody outside has ended the run
    pub(super) ordered: bool,
    /// its one queue is a [`Lane`] of a run over captures
    pub(super) sequenced: bool,
    /// where its part of the state goes, if anywhere
    pub(super) keep: Option<Arc<Keep>>,
    /// what the replicas of the first function have in common, where its state is replicated
    pub(super) group: Option<Arc<Group>>,
}

// SAFETY: frames and descriptors are addresses of memory of the queues, which move with the worker.
unsafe impl Send for Worker {}

impl Worker {
    /// Works until all inputs end, a limit is reached, a port fails or `stop` is raised; then takes
    /// what the devices had delivered, and waits for what was sent to leave. `observe` is called now and then by the
    /// only worker of a run over captures.
    pub fn work(
        &mut self,
        stop: &AtomicBool,
        deadline: Option<Instant>,
        observe: &mut dyn FnMut(Progress),
    ) {
        self.handlers(|stage, clock| stage.start(clock));
        let mut quiet = 0_u32;
        let mut turns = 0_u32;
        loop {
            let late = deadline.is_some_and(|d| Instant::now() >= d);
            self.attend();
            let stopped = stop.load(Ordering::Relaxed);
            if self.sequenced {
                // Packets that were read have places in the whole order: the run ends behind them.
                self.wind_up(stopped, late);
            } else if stopped || late || self.ordered || self.limit_reached() {
                break;
            }
            let received = self.turn();
            turns = turns.wrapping_add(1);
            if turns.is_multiple_of(REFRESH) {
                self.refresh();
                self.tables();
                self.look(false);
                if let Some(progress) = self.lane().and_then(|lane| lane.progress()) {
                    observe(progress);
                }
            }
            // One worker's failed port ends the run: the others must not go on as if nothing were.
            if self.shared.failed.load(Ordering::Relaxed) && !self.sequenced {
                break;
            }
            if received > 0 {
                quiet = 0;
                continue;
            }
            if self.queues.iter().all(|q| q.queue.ended()) && !self.pending() {
                break;
            }
            quiet = quiet.saturating_add(1);
            self.count().once(Once::Idle, 1);
            if quiet > PATIENCE && !self.busy {
                self.refresh();
                self.tables();
                self.look(false);
                wait::readable(&self.queues, self.until_timer(deadline));
            } else {
                std::hint::spin_loop();
            }
        }
        self.drain();
        if self.sequenced {
            // Other workers' packets may have come later than the last of this one's.
            self.alarms(self.clock);
            self.count_alarms();
            self.count_transactions();
        }
        self.shared.ends(self.number);
        self.look(true);
        if let Some(keep) = self.keep.clone() {
            // A replica that could not go on has no state that anybody should take up.
            if !self.failed_replica() {
                let part = self.part();
                keep.end(self.number, part);
            }
        }
        self.handlers(|stage, clock| stage.stop(clock));
        self.refresh();
        self.next_tables = Instant::now();
        self.tables();
        if let Some(mailbox) = &self.mailbox {
            mailbox.close();
        }
    }

    /// Its part of the state, between two bursts.
    fn part(&mut self) -> Result<Part, ModuleError> {
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
    pub(super) fn resume(
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
                Code::Module(code) => code.config.entries.as_slice(),
                Code::Foreign(_) | Code::Classed(_) => &[],
            };
            stage.resume(of, entries, start, shift)?;
        }
        Ok(())
    }

    /// Gives its part while the run goes on, when all other workers give theirs.
    fn keep_now(&mut self) {
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
        if !keep.meet(self.workers) {
            return;
        }
        let part = self.part();
        keep.give(self.number, part);
        keep.meet(self.workers);
    }

    pub(super) fn lane(&mut self) -> Option<&mut Lane> {
        lane(&mut self.queues, self.sequenced)
    }

    /// Ends a run over captures, where that is asked for.
    fn wind_up(&mut self, stopped: bool, late: bool) {
        if (stopped || late)
            && let Some(lane) = self.lane()
        {
            if stopped {
                lane.order_end(Order::Stop);
            }
            if late {
                lane.expire();
            }
        }
    }

    /// Does what was asked for from outside; mostly there is nothing, which costs one load.
    fn attend(&mut self) {
        let Some(mailbox) = &self.mailbox else {
            return;
        };
        for job in mailbox.take() {
            self.perform(job);
        }
    }

    fn perform(&mut self, job: Job) {
        self.refresh();
        self.tables();
        let account = || {
            let (tick, age) = (self.rate.ns_per_tick(), self.rate.elapsed());
            self.shared
                .account_of(self.number, &self.each, tick, age.as_secs_f64())
        };
        let clock = self.clock.max(self.queues_time());
        let ((instance, heavy), chain) = if self.sequenced {
            let first = self.chain.stages.first_mut();
            (first.map_or((None, None), Stage::both), None)
        } else {
            let chain = Live {
                chain: &mut self.chain,
                shared: &self.shared,
                clock,
            };
            ((None, None), Some(chain))
        };
        let mut desk = Desk {
            instance,
            heavy,
            chain,
            group: self.group.clone(),
            others: Vec::new(),
            now: self.clock,
            account: &account,
            order: None,
            keep: false,
        };
        job(&mut desk);
        let (order, keep) = (desk.order, desk.keep);
        if keep {
            self.keep_now();
        }
        match (order, self.lane()) {
            (Some(order), Some(lane)) => lane.order_end(order),
            // Live ports have no end: what they hold already is taken either way.
            (order, _) => self.ordered |= order.is_some(),
        }
    }

    fn count(&self) -> Count<'_> {
        self.shared.count(self.number)
    }

    pub(super) fn limit_reached(&self) -> bool {
        self.limit
            .is_some_and(|limit| self.shared.limit.reached(limit))
    }

    /// Whether a port that carries its own time still holds packets.
    fn pending(&self) -> bool {
        self.queues.iter().any(|q| q.queue.next_stamp().is_some())
    }

    fn until_timer(&self, deadline: Option<Instant>) -> Duration {
        let next = self.next_timer().min(self.next_alarm());
        let timer = Duration::from_nanos(next.saturating_sub(now()));
        let end = deadline.map_or(NAP, |d| d.saturating_duration_since(Instant::now()));
        NAP.min(timer).min(end)
    }

    fn next_timer(&self) -> u64 {
        let timers = self.chain.stages.iter().map(|s| s.timers.next());
        timers.min().unwrap_or(u64::MAX)
    }

    /// When a timer of a map may be due next. Packets fire them by themselves.
    fn next_alarm(&self) -> u64 {
        let alarms = self.chain.stages.iter().map(|s| s.next_alarm());
        alarms.min().unwrap_or(u64::MAX)
    }

    /// One turn over all queues; says how many packets came.
    pub(super) fn turn(&mut self) -> usize {
        // Before the queues are looked at: what was handed over until now is found there.
        let handed = self.group.as_ref().map_or(0, |group| group.handed());
        let mut received = 0;
        for index in 0..self.queues.len() {
            received += self.receive(index);
        }
        if received == 0 {
            let time = self.queues_time();
            self.fire(time);
            if !self.sequenced {
                // Packets fire them by themselves, so that the moment does not depend on where a burst ends.
                if !self.in_packets_time() {
                    self.alarms(time);
                }
                self.idle();
                self.follow(handed);
            }
        }
        self.count_alarms();
        self.count_transactions();
        self.flush();
        // In a run over captures records have the time of the last packet before them, as timers may still fire.
        if received > 0 || !self.sequenced {
            self.records();
        }
        if self.sequenced {
            self.close_window();
        }
        received
    }

    /// Gives a window back once it is through, with what is known of the parts of divided objects.
    fn close_window(&mut self) {
        let Some((clock, count)) = self.lane().and_then(|lane| lane.at_end()) else {
            return;
        };
        self.clock = self.clock.max(clock);
        let upto = self.lane().map_or(0, |lane| lane.upto());
        self.follow(upto);
        let (shared, now) = (&*self.shared, self.clock);
        let stages = &mut self.chain.stages;
        let parts = shared.pressure.parts(stages, &mut self.seen, now, count);
        if !parts.is_empty() {
            let place = shared.places.once(Once::Full);
            shared.counters(self.number).set(place, self.seen.full());
        }
        if let Some(lane) = self.lane() {
            lane.close_window(parts);
        }
    }

    /// Lets elements run that may have something to do without packets.
    fn idle(&mut self) {
        for stage in &mut self.chain.stages {
            stage.idle();
        }
        self.emit(false);
        self.emit(true);
    }

    /// The time for timers when nothing came: that of the next packet where packets carry their own.
    fn queues_time(&self) -> u64 {
        let stamps = self.queues.iter().filter_map(|q| q.queue.next_stamp());
        match stamps.min() {
            Some(stamp) => stamp,
            // At the end of a capture time stands still, and so it does until the next packet of a pipe tells it.
            None if self.queues.iter().all(|q| q.queue.ended()) => self.clock,
            None if self.in_packets_time() => self.clock,
            None => now(),
        }
    }

    /// Whether packets with a time of their own may still come.
    fn in_packets_time(&self) -> bool {
        let mut queues = self.queues.iter();
        queues.any(|q| q.queue.keeps_time() && !q.queue.ended())
    }

    fn receive(&mut self, index: usize) -> usize {
        let before = self.next_timer();
        self.frames.clear();
        let Some(served) = self.queues.get_mut(index).filter(|s| !s.failed) else {
            return 0;
        };
        let most = match self.limit {
            Some(limit) => self.shared.limit.claim(limit, self.burst),
            None => self.burst,
        };
        let result = match lane_of(served, self.sequenced) {
            Some(lane) => {
                Ok(lane.receive_described(&mut self.frames, &mut self.descriptors, before))
            }
            None => served.queue.receive(&mut self.frames, most, before),
        };
        if self.limit.is_some() {
            self.shared.limit.settle(most, self.frames.len());
        }
        if let Err(error) = result {
            self.fail(index, &error);
        }
        if self.frames.is_empty() {
            return 0;
        }
        if self.sequenced {
            self.described();
        } else {
            self.describe(index);
        }
        // Before the functions change them.
        self.find_homes();
        self.count_entry();
        let packets = self.descriptors.get_mut(..self.frames.len());
        // SAFETY: there is a descriptor for each frame, which its queue lends us until it is given back
        // below, and frames do not overlap (`Queue`).
        unsafe { self.chain.run(packets.unwrap_or_default(), &self.frames) };
        self.account_work();
        if self.group.is_some() {
            self.replicated();
        }
        let received = self.frames.len();
        self.emit(false);
        self.deliver();
        self.give_back(index);
        self.emit(true);
        received
    }

    /// Takes a burst of a run over captures, whose sequencer writes descriptors and counts what is out of order. What came
    /// is counted with what becomes of it.
    fn described(&mut self) {
        let count = self.shared.count(self.number);
        self.clock = self.descriptors.last().map_or(self.clock, |p| p.time);
        self.received += self.frames.len() as u64;
        count.once(Once::Bursts, 1);
        count.once(Once::Packets, self.frames.len() as u64);
    }

    /// Says of each packet under which index it came, where a function goes by that.
    fn find_homes(&mut self) {
        let Some(homes) = &self.homes else {
            return;
        };
        for (frame, packet) in self.frames.iter().zip(&mut self.descriptors) {
            packet.home = homes.of(frame.port, bytes(frame));
        }
    }

    /// Writes the descriptors of the burst and counts what came.
    fn describe(&mut self, index: usize) {
        let keeps_time = self.queues.get(index).is_some_and(|s| s.queue.keeps_time());
        let count = self.shared.count(self.number);
        let ports = self.wiring.of_port.len() as u32;
        let (this, workers) = (self.number as u32, self.workers as u64);
        let (mut clock, mut number) = (self.clock, self.received * workers + u64::from(this));
        let (mut burst_time, mut before) = (None, 0);
        let mut row = count.row(OfPort::Read, Some(OfPort::ReadBytes));
        self.descriptors.clear();
        self.descriptors.extend(self.frames.iter().map(|frame| {
            let stamp = match frame.stamp {
                0 => *burst_time.get_or_insert_with(now),
                stamp => stamp,
            };
            before += u64::from(keeps_time && stamp < clock);
            clock = clock.max(stamp).min(abi::LATEST);
            row.add(frame.port, frame.length() as u64);
            let packet = abi::Packet {
                data: frame.data,
                end: frame.end,
                meta: frame.data,
                floor: frame.floor,
                ceiling: frame.ceiling,
                bared: frame.data,
                time: clock,
                // Unlike any other worker's, and the same from run to run on one worker.
                number,
                port: frame.port,
                queue: this,
                ports,
                cpu: this,
                ..abi::Packet::empty()
            };
            number = number.wrapping_add(workers);
            packet
        }));
        drop(row);
        self.clock = clock;
        self.received += self.frames.len() as u64;
        if let Some(served) = self.queues.get(index).filter(|_| self.group.is_some()) {
            let each = self.descriptors.iter_mut().zip(served.queue.sequenced());
            for (packet, sequenced) in each {
                packet.number = sequenced.number;
                packet.commit = sequenced.place.word();
            }
        }
        count.once(Once::OutOfOrder, before);
        count.once(Once::Bursts, 1);
        count.once(Once::Packets, self.frames.len() as u64);
        // Live time goes on between bursts; for packets with their own time `before` keeps this false.
        if self.next_timer() <= self.clock {
            self.fire(self.clock);
        }
    }

    /// Counts the burst, if it is drawn, under the entry of the indirection table that one of its packets has.
    fn count_entry(&mut self) {
        let Some(entries) = &mut self.entries else {
            return;
        };
        let Some((at, packets)) = entries.drawn(self.frames.len()) else {
            return;
        };
        if let Some(frame) = self.frames.get(at) {
            entries.count(frame.port, bytes(frame), packets);
        }
    }

    fn account_work(&mut self) {
        let mut ticks = 0;
        for (stage, work) in self.chain.stages.iter().zip(&self.chain.work) {
            stage.life.add(self.number, OfStage::Packets, work.packets);
            stage.life.add(self.number, OfStage::Bursts, work.bursts);
            stage.life.add(self.number, OfStage::Ticks, work.ticks);
            ticks += work.ticks;
        }
        let packets = self.frames.len() as u64;
        self.each.add(ticks as f64 / packets as f64, packets);
    }

    /// Sends what leaves and gives every packet its fate.
    fn deliver(&mut self) {
        // Borrowed, not cloned: a clone would be a locked addition, each burst, to a line of memory that
        // all workers share.
        let shared = &*self.shared;
        let count = shared.count(self.number);
        let (ends, stages) = (&self.chain.ends, &self.chain.stages);
        if let Some(lane) = lane(&mut self.queues, self.sequenced) {
            let ports = self.wiring.of_port.len() as u32;
            count.burst(ports, &self.frames, &self.descriptors, ends, stages);
            lane.deliver(&mut self.frames, &mut self.descriptors);
            return;
        }
        let delivery = &mut self.delivery;
        delivery.sort(
            &self.wiring,
            &self.frames,
            &self.descriptors,
            ends,
            stages,
            &count,
        );
        for (queue, served) in self.queues.iter_mut().enumerate() {
            let sent = delivery.transmit(queue, served);
            if let Some(error) = sent.error {
                fail(shared, served, &mut self.failures, &error);
            }
            let pass = self.wiring.pass == Some(queue);
            delivery.taken(queue, sent.taken, sent.why, pass, &count);
        }
        delivery.settle(&self.frames, &self.wiring, &count, &self.descriptors);
    }

    /// Gives the burst's frames back to the queue that lent them.
    fn give_back(&mut self, index: usize) {
        let Some(served) = self.queues.get_mut(index) else {
            return;
        };
        if !self.delivery.kept.iter().any(|k| *k) {
            served.queue.release(&self.frames);
            return;
        }
        // Kept buffers belong to the transmitting queue now.
        self.back.clear();
        let kept = self.frames.iter().zip(&self.delivery.kept);
        self.back
            .extend(kept.filter(|(_, kept)| !**kept).map(|(frame, _)| *frame));
        served.queue.release(&self.back);
    }

    fn flush(&mut self) {
        for index in 0..self.queues.len() {
            let Some(served) = self.queues.get_mut(index).filter(|s| !s.failed) else {
                continue;
            };
            if let Err(error) = served.queue.flush() {
                self.fail(index, &error);
            }
        }
    }

    /// Fires the timers that are due at this time.
    fn fire(&mut self, time: u64) {
        if self.next_timer() > time {
            return;
        }
        self.clock = self.clock.max(time);
        for stage in &mut self.chain.stages {
            for (moment, timer) in stage.timers.take(time) {
                let fired = u64::from(stage.fire(timer, moment));
                stage.life.add(self.number, OfStage::Timers, fired);
            }
        }
    }

    /// Fires the timers of maps that are due at this time.
    fn alarms(&mut self, time: u64) {
        if self.next_alarm() > time {
            return;
        }
        self.clock = self.clock.max(time);
        for stage in &mut self.chain.stages {
            stage.alarm(time);
        }
    }

    fn count_alarms(&mut self) {
        for stage in &mut self.chain.stages {
            let fired = stage.alarms_fired();
            if fired != stage.alarms {
                let more = fired.saturating_sub(stage.alarms);
                stage.life.add(self.number, OfStage::Timers, more);
                stage.alarms = fired;
            }
        }
    }

    /// Counts what packets did as transactions since the last time.
    fn count_transactions(&mut self) {
        for stage in &mut self.chain.stages {
            let Some(now) = stage.transactions() else {
                continue;
            };
            let before = std::mem::replace(&mut stage.transacted, now);
            let counters = self.shared.counters(self.number);
            for (what, now, before) in [
                (Once::Commits, now.commits, before.commits),
                (Once::Aborts, now.aborts, before.aborts),
                (Once::Holds, now.holds, before.holds),
                (Once::Alone, now.alone, before.alone),
                (Once::Graces, now.graces, before.graces),
            ] {
                let place = self.shared.places.once(what);
                counters.add(place, now.saturating_sub(before));
            }
        }
    }

    fn handlers(&mut self, each: impl Fn(&mut super::stage::Stage, u64)) {
        for stage in &mut self.chain.stages {
            each(stage, self.clock);
        }
        self.records();
    }

    /// Hands over the records of ring buffers.
    fn records(&mut self) {
        if !self.shared.has_records.load(Ordering::Relaxed) {
            return;
        }
        for stage in &mut self.chain.stages {
            let lane = lane(&mut self.queues, self.sequenced);
            self.shared.records(stage, self.clock, lane);
        }
    }

    fn fail(&mut self, index: usize, error: &PortError) {
        if let Some(served) = self.queues.get_mut(index) {
            fail(&self.shared, served, &mut self.failures, error);
        }
    }

    /// Takes what the devices had delivered when the run ended, and waits for the last to leave.
    fn drain(&mut self) {
        for served in &mut self.queues {
            served.queue.close();
        }
        let mut turns = 0;
        while !self.limit_reached() && turns < LAST_TURNS && self.turn() > 0 {
            turns += 1;
        }
        self.last_row();
        // Elements that gather packets send them after a while.
        let end = Instant::now() + GATHER;
        while Instant::now() < end && self.chain.stages.iter().any(|stage| stage.holds()) {
            self.idle();
        }
        let end = Instant::now() + DRAIN;
        while Instant::now() < end {
            self.flush();
            if self.queues.iter().all(|q| q.failed || q.queue.idle()) {
                break;
            }
            std::thread::sleep(Duration::from_micros(200));
        }
        for index in 0..self.queues.len() {
            let result = self.queues.get_mut(index).map(|s| s.queue.finish());
            if let Some(Err(error)) = result {
                self.fail(index, &error);
            }
        }
    }

    /// Looks at its parts of divided objects.
    fn look(&mut self, end: bool) {
        // Between windows, not now and then.
        if self.sequenced {
            return;
        }
        let (number, now) = (self.number, self.clock);
        let pressure = &self.shared.pressure;
        pressure.look(number, &mut self.chain.stages, &mut self.seen, now, end);
        let (counters, places) = (self.shared.counters(number), &self.shared.places);
        counters.set(places.once(Once::Full), self.seen.full());
        let told = self.entries.as_mut().and_then(|entries| entries.over(end));
        if let Some(told) = told {
            counters.set(places.once(Once::Heaviest), told);
        }
    }

    /// Copies how full the objects are to where everybody reads it: seldom, because of objects that workers share this takes
    /// the lock of all.
    fn tables(&mut self) {
        let now = Instant::now();
        if now < self.next_tables {
            return;
        }
        self.next_tables = now + TABLES;
        for stage in &mut self.chain.stages {
            let life = stage.life.clone();
            life.tables.look(self.number, stage);
        }
    }

    /// Copies the ports' own counts to where everybody reads them.
    fn refresh(&self) {
        let counters = self.shared.counters(self.number);
        let places = &self.shared.places;
        for (index, served) in self.queues.iter().enumerate() {
            let c = served.queue.counts();
            for (what, value) in [
                (OfQueue::Missed, c.missed),
                (OfQueue::Unfit, c.unfit),
                (OfQueue::Failed, c.failed),
                (OfQueue::Discarded, c.discarded),
                (OfQueue::Duplicated, c.duplicated),
                (OfQueue::Altered, c.altered),
            ] {
                counters.set(places.queue(index, what), value);
            }
        }
    }
}

/// The way to the sequencer, in a run over captures: the only queue.
#[inline]
fn lane(queues: &mut [Served], sequenced: bool) -> Option<&mut Lane> {
    lane_of(queues.first_mut()?, sequenced)
}

#[inline]
fn lane_of(served: &mut Served, sequenced: bool) -> Option<&mut Lane> {
    match sequenced {
        true => served.queue.lane(),
        false => None,
    }
}

/// The bytes of a frame.
fn bytes(frame: &Frame) -> &[u8] {
    // SAFETY: a queue lends the frame until it is given back: `length` bytes lie between its bounds, and nobody
    // else has it.
    unsafe { std::slice::from_raw_parts(frame.data, frame.length()) }
}

/// A port failed: it is named, nothing more is asked of it, and the run ends.
pub(super) fn fail(
    shared: &Shared,
    served: &mut Served,
    failures: &mut Vec<Failure>,
    error: &PortError,
) {
    served.failed = true;
    shared.failed.store(true, Ordering::Relaxed);
    failures.push(Failure {
        error: error.to_string(),
        help: error.help(),
    });
}
