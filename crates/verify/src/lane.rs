//! One side of the comparison: a number of copies of the function, and who gets which packet.
//!
//! The sequential side is a lane of one copy without dispatch.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use millrace_dataplane::Share;
use millrace_dataplane::module::{Config, ModuleError, Shared};
use millrace_dataplane::packet::Burst;
use millrace_dataplane::replica::Place;
use millrace_steer::Parsed;

use crate::answers::{Addressed, Answers};
use crate::copy::{Copy, Start};
use crate::deal::Dispatch;
use crate::distributed::{Distributed, Saw};
use crate::moving::{Change, Table};
use crate::outcome::Outcome;
use crate::replica::{self, Numbered};
use crate::schedule::{Chooser, Schedule};
use crate::trace::Packet;
use crate::tuple::{Places, Tuple};

/// A packet and what became of it on one side.
#[derive(Clone, Debug)]
pub struct Done {
    /// the frame that this side was given
    pub given: Vec<u8>,
    /// what became of it
    pub outcome: Outcome,
}

/// A packet that waits for its worker.
pub(super) struct Waiting {
    pub index: usize,
    pub packet: Packet,
    pub anew: bool,
    /// where state is replicated, its place in the order of rows
    pub place: Place,
}

/// Rows that a worker without packets may have to apply.
const FAR: u64 = 1 << 12;

/// One side.
pub struct Lane<'a> {
    /// its copies, by worker
    pub copies: Vec<Copy>,
    dispatch: Option<&'a dyn Dispatch>,
    /// what it made of flows
    pub answers: Answers,
    pub(super) schedule: Schedule,
    chooser: Chooser,
    pub(super) queues: Vec<VecDeque<Waiting>>,
    pub(super) turn: u64,
    /// the copies share state: they work at the same time, and the order of their commits says what they did
    pub shares: bool,
    /// what is due at moments of its own is ended by packets themselves, in the order of commits
    events: bool,
    /// the copies are replicas: what numbers their packets
    pub numbered: Option<Numbered>,
    /// packets that are numbered go to the workers that `dispatch` names, since these have parts of some objects
    pub directed: bool,
    /// where buckets change their workers, where they are
    pub table: Option<Table>,
    /// an answer is given to the function once what it answers has left it
    waits: bool,
    burst: Option<Burst>,
    /// of the sequential side: what workers saw of each other's parts of numbers
    pub distributed: Option<Distributed>,
    /// of the parallel side: what workers held behind what happened without a packet, before which packet
    pub happened: Vec<(u64, Vec<Saw>)>,
}

impl<'a> Lane<'a> {
    /// One copy that gets every packet, in order.
    ///
    /// # Errors
    /// There is no memory for its state, or entries do not fit.
    pub fn sequential(start: &Start<'_>) -> Result<Self, ModuleError> {
        Self::new(start, 1, None, Schedule::Ingress)
    }

    /// So many copies, each with a secret of its own for its hash tables.
    ///
    /// # Errors
    /// As [`Self::sequential`].
    pub fn parallel(
        start: &Start<'_>,
        workers: u32,
        dispatch: &'a dyn Dispatch,
        schedule: Schedule,
    ) -> Result<Self, ModuleError> {
        Self::new(start, workers.max(1), Some(dispatch), schedule)
    }

    fn new(
        start: &Start<'_>,
        workers: u32,
        dispatch: Option<&'a dyn Dispatch>,
        schedule: Schedule,
    ) -> Result<Self, ModuleError> {
        let shared = Shared::create(start.module.clone(), start.config, workers)?;
        let shares = workers > 1 && start.module.orders();
        let objects = &start.program.objects;
        let events = shares
            && objects.iter().any(|o| o.expiry.is_some())
            && objects.iter().all(|o| o.timer.is_none());
        let numbered = Numbered::new(start, workers)?;
        let group = numbered.as_ref().map(Numbered::group);
        let copies = (0..workers).map(|worker| {
            let secret = u64::from(worker) + if dispatch.is_some() { 2 } else { 1 };
            let config = Config {
                // Parts have secrets of their own.
                hash_seed: replica::secret(
                    start.config,
                    secret,
                    group.is_some() && start.small.is_none(),
                ),
                ..match workers {
                    1 => start.config.clone(),
                    _ => start.config.of_worker(worker),
                }
            };
            let mine = Some((&shared, worker));
            Copy::new(start, &config, mine)?.of_group(group, start.small.as_ref(), worker)
        });
        let copies = copies.collect::<Result<Vec<_>, ModuleError>>()?;
        Ok(Self {
            burst: copies.first().map(Copy::burst),
            copies,
            dispatch,
            answers: Answers::default(),
            schedule,
            chooser: Chooser::new(schedule),
            queues: (0..workers).map(|_| VecDeque::new()).collect(),
            turn: 0,
            shares,
            events,
            numbered,
            directed: false,
            table: None,
            waits: schedule != Schedule::Ingress && (!shares || start.rewrites),
            distributed: None,
            happened: Vec::new(),
        })
    }

    /// Runs `ON_START` everywhere; objects begin as they stand on the workers.
    pub fn start(&mut self, time: u64, shares: &[Share]) {
        for copy in &mut self.copies {
            copy.start(time);
            copy.begin(shares, time);
        }
    }

    /// Runs `ON_STOP` everywhere.
    pub fn stop(&mut self, time: u64) {
        if let Some(numbered) = &mut self.numbered {
            let last = numbered.end(time);
            self.follow(last);
        }
        self.copies.iter_mut().for_each(|c| c.stop(time));
    }

    /// Copies apply all rows up to this one; nothing waits for them.
    fn follow(&mut self, upto: u64) {
        for worker in 0..self.copies.len() {
            self.settle(worker, upto, (None, &mut []));
            if let Some(copy) = self.copies.get_mut(worker) {
                copy.follow(upto);
            }
        }
    }

    /// Owners of heavy keys get as far as a worker needs that is to apply rows up to this one, so that it does not wait: each does
    /// the packets before its promotion, and then that.
    fn settle(
        &mut self,
        worker: usize,
        upto: u64,
        (cpus, done): (Option<&[u32]>, &mut [Option<Done>]),
    ) {
        while let Some((number, owner)) = self.copies.get(worker).and_then(|c| c.waits(upto)) {
            let owner = owner as usize;
            let before = |w: &Waiting| {
                let place = w.place;
                place.sequence() < number
            };
            while self
                .queues
                .get(owner)
                .and_then(|q| q.front())
                .is_some_and(before)
            {
                self.burst(owner, 1, cpus, done);
            }
            // Numbers that it waits for are smaller.
            self.settle(owner, number, (cpus, &mut *done));
            match self.copies.get_mut(owner) {
                Some(copy) if copy.waits(number).is_none() => copy.follow(number),
                _ => return,
            }
        }
    }

    /// Fires a timer everywhere.
    pub fn fire(&mut self, timer: usize, time: u64) {
        if self.numbered.is_some() {
            // Replicas fire it at a heartbeat before the next packet.
            return;
        }
        self.copies.iter_mut().for_each(|c| c.fire(timer, time));
    }

    /// Records that were left by what is no packet, of all copies.
    pub fn take_records(&mut self) -> Vec<(usize, Vec<u8>)> {
        let records = self.copies.iter_mut().flat_map(Copy::take_records);
        records.collect()
    }

    /// Does packets. Each copy is told to be on CPU `cpus[i]` for packet `i`, or on that of its own number.
    pub fn work(&mut self, window: &[Packet], cpus: Option<&[u32]>) -> Vec<Option<Done>> {
        let mut done: Vec<Option<Done>> = window.iter().map(|_| None).collect();
        let mut pending: HashMap<Tuple, usize> = HashMap::new();
        for (index, packet) in window.iter().enumerate() {
            let mut flow = None;
            if self.waits {
                flow = Places::of(&packet.frame).and_then(|p| p.tuple(&packet.frame));
                // An answer cannot come before what it answers has left.
                let asked = flow.as_ref().and_then(|flow| pending.remove(flow));
                if asked.is_some() && self.shares {
                    self.drain(cpus, &mut done);
                    pending.clear();
                } else if let Some(worker) = asked {
                    self.catch_up(worker, cpus, &mut done);
                }
            }
            let alone = self.numbered.is_none();
            if alone && !self.events && self.copies.iter().any(|c| c.alarm_due(packet.time)) {
                self.drain(cpus, &mut done);
                self.alarm(packet);
            }
            if self.table.as_ref().is_some_and(|t| t.due(packet)) {
                self.change(packet, (cpus, &mut done));
            }
            let (copies, anywhere) = (&mut self.copies, self.table.is_some());
            let Addressed { packet, anew } = self.answers.address(packet, |worker, lease| {
                let now = leased(
                    copies,
                    anywhere,
                    worker,
                    (lease.object, lease.number),
                    packet.time,
                );
                now.as_ref() == Some(&lease.value)
            });
            let placed = self.numbered.as_mut().and_then(|n| n.place(&packet));
            let worker = match placed {
                Some((_, worker)) if !self.directed => worker as usize,
                _ => self.worker(&packet),
            };
            if let Some(flow) = flow {
                pending.insert(flow.reversed(), worker);
            }
            let waiting = Waiting {
                index,
                packet,
                anew,
                place: placed.map_or_else(Place::default, |(place, _)| place),
            };
            match self.queues.get_mut(worker) {
                Some(queue) => queue.push_back(waiting),
                None => continue,
            }
            if self.schedule == Schedule::Ingress {
                self.catch_up(worker, cpus, &mut done);
            }
        }
        self.drain(cpus, &mut done);
        if let Some(last) = window.last().filter(|_| self.events) {
            self.copies.iter_mut().for_each(|c| c.alarm(last.time));
        }
        // A worker whose keys are sharded may have no packet for long.
        let rows = self.numbered.as_ref().map_or(0, Numbered::rows);
        let far = |copy: &Copy| copy.applied().is_some_and(|a| rows - a > FAR);
        if self.copies.iter().any(far) {
            self.follow(rows);
        }
        done
    }

    /// Buckets change their workers, before a packet.
    fn change(&mut self, packet: &Packet, (cpus, done): (Option<&[u32]>, &mut [Option<Done>])) {
        let Some(mut table) = self.table.take() else {
            return;
        };
        while table.due(packet) {
            let change = table.change(packet);
            self.table = Some(table);
            match &change {
                // Workers that share state do their packets at the same time.
                Change::Move { .. } if self.shares => self.drain(cpus, &mut *done),
                Change::Move { from, .. } => self.catch_up(*from, cpus, &mut *done),
                Change::Cores | Change::Key => self.drain(cpus, &mut *done),
                Change::None | Change::Announce { .. } => {}
            }
            let Some(there) = self.table.take() else {
                return;
            };
            table = there;
            let (copies, now) = (self.copies.as_mut_slice(), packet.time);
            match change {
                Change::None => {}
                Change::Announce { bucket } => table.announce(bucket, copies),
                Change::Move { bucket, from, to } => table.make((bucket, from, to), copies, now),
                Change::Cores => table.cores(copies, now),
                Change::Key => table.key(copies, now),
            }
        }
        self.table = Some(table);
    }

    /// The value that is kept with a number leased at a worker, or at any where numbers move.
    pub fn leased(&mut self, worker: u32, object: usize, number: u64, now: u64) -> Option<Vec<u8>> {
        let anywhere = self.table.is_some();
        leased(&mut self.copies, anywhere, worker, (object, number), now)
    }

    /// What is due before a packet happens everywhere, when no packet is under way.
    fn alarm(&mut self, before: &Packet) {
        if let (Some(distributed), [one]) = (&self.distributed, self.copies.as_mut_slice()) {
            distributed.whole(one);
        }
        let copies = self.copies.iter_mut();
        copies.for_each(|c| c.alarm(before.time));
        let hold = self.copies.iter_mut().enumerate();
        let held: Option<Vec<Saw>> = hold.map(|(worker, c)| c.holds(worker)).collect();
        self.happened.extend(held.map(|held| (before.number, held)));
        if let (Some(distributed), [one]) = (&mut self.distributed, self.copies.as_mut_slice()) {
            distributed.went_on(one, before.number);
        }
    }

    /// What each copy holds of numbers, where that is noted.
    pub fn holds(&mut self) -> Vec<Saw> {
        let copies = self.copies.iter_mut().enumerate();
        copies.filter_map(|(worker, c)| c.holds(worker)).collect()
    }

    /// Each packet's view of other copies' parts of numbers is noted.
    pub fn note(&mut self) {
        let moments = Arc::default();
        self.copies.iter_mut().for_each(|c| c.noting(&moments));
    }

    /// The worker that a packet comes to.
    #[must_use]
    pub fn worker(&self, packet: &Packet) -> usize {
        if let Some(table) = &self.table {
            return table.worker(packet) as usize;
        }
        self.dispatch.map_or(0, |d| {
            let worker = d.worker(packet.port, &packet.frame);
            worker % self.copies.len().max(1) as u32
        }) as usize
    }

    /// Identity of a packet's flow: packets of a port that are read alike come to one worker, in order. None
    /// where nobody deals them out.
    #[must_use]
    pub fn flow(&self, port: u32, frame: &[u8]) -> Option<(u32, Parsed)> {
        // Packets of one flow go to all replicas.
        let dispatch = self.dispatch.filter(|_| self.numbered.is_none())?;
        Some((port, dispatch.read(port, frame)))
    }

    /// One worker does all that waits for it.
    fn catch_up(&mut self, worker: usize, cpus: Option<&[u32]>, done: &mut [Option<Done>]) {
        self.burst(worker, usize::MAX, cpus, done);
    }

    /// Everybody does all that waits.
    fn drain(&mut self, cpus: Option<&[u32]>, done: &mut [Option<Done>]) {
        if self.schedule == Schedule::Threads || (self.shares && self.schedule != Schedule::Ingress)
        {
            return self.at_once(cpus, done);
        }
        while let Some((worker, most)) = self.chooser.next(&self.queues) {
            self.burst(worker, most, cpus, done);
        }
    }

    fn burst(
        &mut self,
        worker: usize,
        most: usize,
        cpus: Option<&[u32]>,
        done: &mut [Option<Done>],
    ) {
        for _ in 0..most {
            let next = self.queues.get(worker).and_then(|q| q.front());
            if let Some(place) = next.map(|w| w.place) {
                self.settle(worker, place.sequence(), (cpus, &mut *done));
            }
            let waiting = self.queues.get_mut(worker).and_then(VecDeque::pop_front);
            let (Some(waiting), Some(copy)) = (waiting, self.copies.get_mut(worker)) else {
                return;
            };
            let burst = self.burst.get_or_insert_with(|| copy.burst());
            let (number, time) = (waiting.packet.number, waiting.packet.time);
            if let Some(distributed) = &mut self.distributed {
                distributed.before(copy, number);
            }
            let outcome = one(copy, burst, &waiting, (worker as u32, self.turn), cpus);
            if let Some(distributed) = &mut self.distributed {
                distributed.behind(copy, number, time);
            }
            if let Some(table) = &mut self.table {
                table.step(worker, copy);
            }
            self.turn += 1;
            self.keep(waiting, outcome, done);
        }
    }

    pub(super) fn keep(&mut self, waiting: Waiting, outcome: Outcome, done: &mut [Option<Done>]) {
        if !waiting.anew {
            self.answers.learn(&waiting.packet, &outcome);
        }
        if let Some(place) = done.get_mut(waiting.index) {
            *place = Some(Done {
                given: waiting.packet.frame,
                outcome,
            });
        }
    }
}

fn leased(
    copies: &mut [Copy],
    anywhere: bool,
    worker: u32,
    (object, number): (usize, u64),
    now: u64,
) -> Option<Vec<u8>> {
    match anywhere {
        true => copies
            .iter_mut()
            .find_map(|c| c.leased(object, number, now)),
        false => copies.get_mut(worker as usize)?.leased(object, number, now),
    }
}

pub(super) fn one(
    copy: &mut Copy,
    burst: &mut Burst,
    waiting: &Waiting,
    by: (u32, u64),
    cpus: Option<&[u32]>,
) -> Outcome {
    copy.at(waiting.place);
    let cpu = cpus.and_then(|cpus| cpus.get(waiting.index)).copied();
    copy.give(burst, &waiting.packet, cpu.unwrap_or(by.0), by)
}
