//! The loop of one worker: receive, run to completion, send, give back.

mod orders;
mod receive;
mod time;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::chain::Chain;
use super::counters::{OfQueue, OfStage, Once};
use super::deliver::{Count, Delivery, Wiring};
use super::entries::Entries;
use super::keep::Keep;
use super::made::Made;
use super::moving::Mover;
use super::pressure::Seen;
use super::stage::Stage;
use super::{Shared, wait};
use crate::account::Failure;
use crate::clock::{self, Rate};
use crate::copies::Copier;
use crate::histogram::Histogram;
use crate::mailbox::{Mailbox, Order};
use crate::module::{Homes, abi};
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
    /// until when it does not sleep, as others are about to wait for it
    pub(super) awake: Option<Instant>,
    /// its one queue is a [`Lane`] of a run over captures
    pub(super) sequenced: bool,
    /// where its part of the state goes, if anywhere
    pub(super) keep: Option<Arc<Keep>>,
    /// what the replicas of the first function have in common, where its state is replicated
    pub(super) group: Option<Arc<Group>>,
    /// its part in moves of buckets, where these move
    pub(super) mover: Option<Mover>,
    /// its part in copies on other machines, where there are some
    pub(super) copier: Option<Copier>,
    /// other machines have buckets
    pub(super) peers: bool,
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
        wait::punctual();
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
            let awaits = self.chain.stages.iter().any(|stage| stage.awaits());
            let looks = self.mover.as_ref().is_some_and(Mover::is_wanted)
                || self.copier.as_ref().is_some_and(Copier::is_busy);
            if quiet <= PATIENCE || self.busy {
                std::hint::spin_loop();
            } else if awaits || looks || self.stays_awake() {
                // Whoever it waits for may need the processor.
                std::thread::yield_now();
            } else {
                self.refresh();
                self.tables();
                self.look(false);
                wait::readable(&self.queues, quiet, self.until_timer(deadline));
            }
        }
        self.drain();
        if self.sequenced {
            // Other workers' packets may have come later than the last of this one's.
            self.alarms(self.clock);
            self.count_alarms();
            self.count_transactions();
        }
        self.settle();
        if let Some(copier) = &mut self.copier
            && let Some((instance, _)) = self.chain.stages.first_mut().and_then(Stage::held)
        {
            copier.end(instance);
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

    /// Whether others are about to wait for it.
    fn stays_awake(&mut self) -> bool {
        let stays = self.awake.is_some_and(|until| Instant::now() < until);
        if !stays {
            self.awake = None;
        }
        stays
    }

    /// Takes part in moves of buckets.
    #[inline]
    fn move_buckets(&mut self) {
        if let Some(mover) = self.mover.as_mut().filter(|m| m.is_wanted()) {
            match mover.of(&mut self.chain.stages) {
                Some((instance, shares)) => {
                    mover.act(instance, shares, self.clock.max(clock::now()));
                }
                None => mover.lacks(&mut self.chain.stages),
            }
        }
        if let Some(copier) = &mut self.copier
            && let Some((instance, _)) = self.chain.stages.first_mut().and_then(Stage::held)
        {
            copier.act(instance);
        }
    }

    /// Behind this no entries of a bucket are on their way.
    pub(super) fn settle(&mut self) {
        if let Some(mover) = &mut self.mover
            && let Some((instance, shares)) = mover.of(&mut self.chain.stages)
        {
            mover.settle(instance, shares, self.clock.max(clock::now()));
        }
    }

    fn count(&self) -> Count<'_> {
        self.shared.count(self.number)
    }

    pub(super) fn limit_reached(&self) -> bool {
        self.limit
            .is_some_and(|limit| self.shared.limit.reached(limit))
    }

    /// One turn over all queues; says how many packets came.
    pub(super) fn turn(&mut self) -> usize {
        // Before the queues are looked at: what was handed over until now is found there.
        let handed = self.group.as_ref().map_or(0, |group| group.handed());
        self.move_buckets();
        let mut received = 0;
        for index in 0..self.queues.len() {
            received += self.receive(index);
        }
        if let Some(copier) = self.copier.as_mut().filter(|_| received > 0) {
            copier.received();
        }
        if received == 0 {
            let time = self.queues_time();
            self.fire(time);
            self.slow_time(time);
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
