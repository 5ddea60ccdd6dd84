//! Both sides together, going through a trace in step.

use std::collections::hash_map::DefaultHasher;
use std::collections::{BTreeSet, HashMap};
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use millrace_dataplane::Share;
use millrace_dataplane::module::{Members, ModuleError};
use millrace_dataplane::moved::Contents;
use millrace_object::program::Program;
use millrace_place::Held;

use crate::alike::{LOOKS, Lanes, unchanged};
use crate::compare::{Alike, Found, Kind, Pair, compare};
use crate::copy::{Copy, Start};
use crate::deal::{Deal, private};
use crate::distributed::{self, Distributed};
use crate::findings::Transactions;
use crate::history::{self, History};
use crate::lane::{Done, Lane};
use crate::lease::Bijection;
use crate::moving::Table;
use crate::order::Order;
use crate::probes::{Named, Probe};
use crate::schedule::Schedule;
use crate::state::value::same_but;
use crate::state::{self, Base, Lying, StateFound};
use crate::trace::Packet;

/// Flows whose order is watched.
const MOST_FLOWS: usize = 1 << 22;
/// Numbers that are tried for a packet that names a free one.
const TRIED: u64 = 4096;

/// A leased number as the key that an allocator lists.
fn small(key: &[u8]) -> u64 {
    let bytes = key.iter().take(8).enumerate();
    bytes.fold(0, |n, (i, b)| n | u64::from(*b) << (8 * i))
}

/// The sequential program and the parallel one.
pub struct Sides<'a> {
    /// one copy
    pub sequential: Lane<'a>,
    /// a copy for each worker
    pub parallel: Lane<'a>,
    /// which leases stand for which
    pub bijection: Bijection,
    base: Base,
    /// the objects that workers share, or have replicas of, and that are compared entry by entry
    shared: BTreeSet<usize>,
    /// how each object is seen from outside
    shares: Vec<Share>,
    /// by flow: worker and turn of its last packet
    flows: HashMap<u64, (u32, u64)>,
    /// where packets name leased numbers
    pub named: Arc<Named>,
    /// by object: the first number that an allocator leases, and how many
    pub numbers: Vec<(u64, u64)>,
    /// what workers that share state have done so far
    order: Order,
    /// where packets are transactions, what versions say of them
    history: Option<History>,
    /// faults in the order that are no packet's
    beyond: Vec<String>,
}

/// Outcomes of a packet on both sides, and their difference.
pub struct Step {
    /// the sequential side
    pub sequential: Done,
    /// the parallel side
    pub parallel: Done,
    /// what differs
    pub found: Found,
    /// in a sentence, where more can be said than what both did
    pub why: Option<String>,
}

impl<'a> Sides<'a> {
    /// Both at start: the sequential side with one module, the parallel one with another.
    ///
    /// # Errors
    /// There is no memory for their state, or entries do not fit.
    pub fn new(
        sequential: &Start<'_>,
        parallel: &Start<'_>,
        (program, deal): (&Program, &'a Deal<'a>),
        schedule: Schedule,
    ) -> Result<Self, ModuleError> {
        let mut lane = Lane::parallel(parallel, deal.workers, deal.dispatch, schedule)?;
        lane.directed = deal.placement.replicates() && deal.placement.divides();
        lane.table = deal.moving.and_then(|moving| {
            let contents = Contents::of(&deal.placement, parallel.module)?;
            let workers = deal.placement.table(deal.workers)?;
            Some(Table::new(contents, workers, moving, deal.workers as usize))
        });
        let mut bijection = Bijection::default();
        bijection.moves = lane.table.is_some();
        Ok(Self {
            sequential: Lane::sequential(sequential)?,
            parallel: lane,
            bijection,
            base: Base::new(),
            shared: { program.objects.iter().enumerate() }
                .filter(|(i, o)| {
                    let held = deal.held(*i);
                    let one = match held {
                        Held::Locked | Held::Transacted => deal.shares(),
                        Held::Replicated => deal.replicates(),
                        _ => false,
                    };
                    one && private(held, o).is_none()
                })
                .map(|(i, _)| i)
                .collect(),
            shares: Share::of(&deal.placement, parallel.module),
            flows: HashMap::new(),
            named: Arc::default(),
            numbers: Vec::new(),
            order: Order::of(deal.transacts()),
            history: deal.transacts().then(History::default),
            beyond: Vec::new(),
        })
    }

    /// Runs `ON_START` at a time (ns); the state afterwards is what packets change.
    pub fn start(&mut self, program: &Program, deal: &Deal<'_>, time: u64) {
        self.sequential.start(time, &[]);
        self.parallel.start(time, &self.shares);
        if let Some(table) = &mut self.parallel.table {
            table.shares.clone_from(&self.shares);
        }
        let members: Vec<Members> = self.shares.iter().map(|s| s.members).collect();
        if let Some(mut distributed) = Distributed::of(program, deal, &members) {
            self.parallel.note();
            let held = self.parallel.holds();
            if let [one] = self.sequential.copies.as_mut_slice() {
                distributed.start(one, &held);
            }
            self.sequential.distributed = Some(distributed);
        }
        self.sequential.take_records();
        self.parallel.take_records();
        self.base = state::base(program, deal, &mut self.sequential, time);
    }

    /// Fires a timer on both sides.
    pub fn fire(&mut self, timer: usize, time: u64) {
        self.sequential.fire(timer, time);
        self.parallel.fire(timer, time);
        // What timers record is no packet's, and each copy has its own.
        self.sequential.take_records();
        self.parallel.take_records();
    }

    /// Runs `ON_STOP`.
    pub fn stop(&mut self, time: u64) {
        self.sequential.stop(time);
        self.parallel.stop(time);
    }

    /// Gives packets to both sides. The sequential program sees the CPU of the worker that had the packet on
    /// the parallel side: which one that is, is an input.
    ///
    /// A packet that names a leased number is done by itself: what stands for the number on the parallel side is known
    /// once all before it have been.
    pub fn work(&mut self, window: &[Packet]) -> Vec<Step> {
        let mut steps = Vec::with_capacity(window.len());
        let mut rest = window;
        while let Some((at, probe)) = self.next_probe(rest) {
            let (before, from) = rest.split_at(at);
            let (packet, behind) = from.split_at(1);
            steps.extend(self.both(before, before, None));
            if let [packet] = packet {
                let number = self.stands_for(packet, &probe);
                let theirs = [probe.with(packet, number)];
                let named = (probe.number, number);
                steps.extend(self.both(std::slice::from_ref(packet), &theirs, Some(named)));
            }
            rest = behind;
        }
        steps.extend(self.both(rest, rest, None));
        steps
    }

    fn next_probe(&self, window: &[Packet]) -> Option<(usize, Probe)> {
        window.iter().enumerate().find_map(|(at, packet)| {
            let probe = self.named.of(packet)?;
            let answers = [&self.sequential.answers, &self.parallel.answers];
            (!answers.iter().any(|a| a.answered(packet))).then_some((at, probe))
        })
    }

    /// The number that a packet names on the parallel side (`probes.rs`).
    fn stands_for(&mut self, packet: &Packet, probe: &Probe) -> u16 {
        let now = packet.time;
        let (number, workers) = (u64::from(probe.number), self.parallel.copies.len());
        let lane = &mut self.parallel;
        let shared = &self.shared;
        let place = |object: usize, worker: usize| match shared.contains(&object) {
            true => 0,
            false => worker,
        };
        let free = |lane: &mut Lane<'_>, candidate: u16| {
            let worker = lane.worker(&probe.with(packet, candidate));
            probe.objects.iter().all(|object| {
                let copy = lane.copies.get_mut(place(*object, worker));
                let lease = copy.and_then(|c| c.leased(*object, u64::from(candidate), now));
                lease.is_none()
            })
        };
        for &object in &probe.objects {
            let one = self.sequential.copies.first_mut();
            let Some(value) = one.and_then(|c| c.leased(object, number, now)) else {
                continue;
            };
            let known = self.bijection.parallel(object, number);
            let same = (0..workers as u32).map(|w| (w, number));
            let mut candidates: Vec<(u32, u64)> = known.into_iter().chain(same).collect();
            let has = |lane: &mut Lane<'_>, (worker, number): (u32, u64)| {
                let copy = lane.copies.get_mut(worker as usize);
                copy.and_then(|c| c.leased(object, number, now)).as_ref() == Some(&value)
            };
            candidates.retain(|c| has(lane, *c));
            if candidates.is_empty() {
                // No packet has shown it yet.
                for (worker, copy) in lane.copies.iter_mut().enumerate() {
                    let entries = copy.entries(object, now).unwrap_or_default();
                    let same = entries.into_iter().filter(|(_, v)| *v == value);
                    candidates.extend(same.map(|(key, _)| (worker as u32, small(&key))));
                }
            }
            let comes = candidates.into_iter().find_map(|(worker, number)| {
                let number = u16::try_from(number).ok()?;
                let to = lane.worker(&probe.with(packet, number));
                (place(object, to) == place(object, worker as usize)).then_some(number)
            });
            if let Some(number) = comes {
                return number;
            }
        }
        if free(lane, probe.number) {
            return probe.number;
        }
        let of = |object: &usize| self.numbers.get(*object).copied();
        let (first, count) = probe.objects.first().and_then(of).unwrap_or((0, 1 << 16));
        let others = (1..count.min(TRIED)).map(|n| {
            let behind = number.saturating_sub(first).wrapping_add(n);
            first + behind % count.max(1)
        });
        let mut others = others.filter_map(|n| u16::try_from(n).ok());
        others.find(|n| free(lane, *n)).unwrap_or(probe.number)
    }

    /// Both sides do packets, which are others on the parallel side where they name a number.
    fn both(
        &mut self,
        window: &[Packet],
        theirs: &[Packet],
        named: Option<(u16, u16)>,
    ) -> Vec<Step> {
        if window.is_empty() {
            return Vec::new();
        }
        let mut parallel = self.parallel.work(theirs, None);
        let versions = self.versions(theirs, &mut parallel);
        self.hand_over(window, &mut parallel);
        let cpus: Vec<u32> = parallel
            .iter()
            .map(|d| d.as_ref().map_or(0, |d| d.outcome.worker))
            .collect();
        let mut wrong = self.order.look(self.parallel.shares, window, &parallel);
        let mut faults: Vec<distributed::Fault> = Vec::new();
        let sequential = if let Some(order) = versions {
            let did = self.repeated(window, &cpus, &parallel, &order);
            faults.extend(order.faults);
            did
        } else if self.parallel.shares {
            self.in_order(window, &cpus, &parallel)
        } else {
            self.sequential.work(window, Some(&cpus))
        };
        faults.extend(self.stale());
        for (packet, kind, what) in faults {
            let at = window.iter().position(|p| Some(p.number) == packet);
            match at.and_then(|at| wrong.get_mut(at)) {
                Some(place) => *place = place.take().or(Some((kind, what))),
                None => self.beyond.push(what),
            }
        }
        let pairs = sequential.into_iter().zip(parallel).zip(window).zip(wrong);
        pairs
            .filter_map(|(((one, other), packet), wrong)| {
                let mut step = self.step(one?, other?, packet, named);
                if let (Some((kind, what)), false) =
                    (wrong, matches!(step.found, Found::Differs(_)))
                {
                    step.why = Some(what);
                    step.found = Found::Differs(kind);
                }
                Some(step)
            })
            .collect()
    }

    /// What packets saw of other workers' parts of numbers is an input of the sequential program.
    fn hand_over(&mut self, window: &[Packet], parallel: &mut [Option<Done>]) {
        let happened = std::mem::take(&mut self.parallel.happened);
        let Some(distributed) = &mut self.sequential.distributed else {
            return;
        };
        for (before, all) in happened {
            distributed.happened(before, all);
        }
        for (packet, done) in window.iter().zip(parallel) {
            let saw = done.as_mut().and_then(|d| d.outcome.saw.take());
            if let Some(saw) = saw {
                distributed.saw(packet.number, *saw);
            }
        }
    }

    /// What is wrong with what packets saw so, when both sides have done a window.
    fn stale(&mut self) -> Vec<distributed::Fault> {
        let Some(distributed) = &mut self.sequential.distributed else {
            return Vec::new();
        };
        let faults = distributed.look();
        // Whoever asks sees all parts as one.
        if let [one] = self.sequential.copies.as_mut_slice() {
            distributed.whole(one);
        }
        faults
    }

    /// How many packets saw less of such numbers than all that was there, where they may.
    #[must_use]
    pub fn behind(&self) -> u64 {
        let distributed = self.sequential.distributed.as_ref();
        distributed.map_or(0, |d| d.stale)
    }

    /// The sequential program does what the workers did in the order in which they committed it, at the times that they
    /// had for it: the order keeps each worker's packets, and time does not go back in it (`order.rs`).
    fn in_order(
        &mut self,
        window: &[Packet],
        cpus: &[u32],
        parallel: &[Option<Done>],
    ) -> Vec<Option<Done>> {
        let commit = |i: &usize| {
            let done = parallel.get(*i).and_then(Option::as_ref);
            // Equal ones by the packets' numbers, which ascend.
            (
                done.map_or((u64::MAX, 0), |d| (d.outcome.commit, d.outcome.time)),
                *i,
            )
        };
        let mut order: Vec<usize> = (0..window.len()).collect();
        order.sort_by_key(commit);
        let at_its_time = |i: &usize| {
            let done = parallel.get(*i).and_then(Option::as_ref);
            let packet = window.get(*i)?.clone();
            Some(Packet {
                time: done.map_or(packet.time, |d| d.outcome.time),
                ..packet
            })
        };
        let ordered: Vec<Packet> = order.iter().filter_map(at_its_time).collect();
        let theirs: Vec<u32> = order.iter().filter_map(|i| cpus.get(*i).copied()).collect();
        let did = self.sequential.work(&ordered, Some(&theirs));
        let mut by_place: Vec<Option<Done>> = window.iter().map(|_| None).collect();
        for (i, done) in order.into_iter().zip(did) {
            if let Some(place) = by_place.get_mut(i) {
                *place = done;
            }
        }
        by_place
    }

    /// Where packets are transactions: their order by the versions that they read and wrote, which the packets have then.
    fn versions(
        &mut self,
        window: &[Packet],
        parallel: &mut [Option<Done>],
    ) -> Option<history::Order> {
        let history = self.history.as_mut()?;
        let noted = self.parallel.copies.iter_mut().map(|copy| copy.accesses());
        let order = history.order(noted.collect());
        let at: HashMap<u64, usize> = (window.iter().enumerate())
            .map(|(at, packet)| (packet.number, at))
            .collect();
        for (rank, place) in (order.first + 1..).zip(&order.places) {
            let at = place.packet.and_then(|number| at.get(&number));
            if let Some(Some(done)) = at.and_then(|at| parallel.get_mut(*at)) {
                done.outcome.commit = rank;
            }
        }
        Some(order)
    }

    /// The sequential program does what the workers did in the order that versions say, at the times that they had for it; what
    /// they removed for its age goes where they did so. What is in no place did not cross the border.
    fn repeated(
        &mut self,
        window: &[Packet],
        cpus: &[u32],
        parallel: &[Option<Done>],
        order: &history::Order,
    ) -> Vec<Option<Done>> {
        let at: HashMap<u64, usize> = (window.iter().enumerate())
            .map(|(at, packet)| (packet.number, at))
            .collect();
        let placed: BTreeSet<u64> = order.places.iter().filter_map(|p| p.packet).collect();
        let rest = window.iter().filter(|p| !placed.contains(&p.number));
        let rest = rest.map(|packet| history::Place {
            packet: Some(packet.number),
            removed: Vec::new(),
        });
        let places: Vec<history::Place> = order.places.iter().cloned().chain(rest).collect();
        let mut done: Vec<Option<Done>> = window.iter().map(|_| None).collect();
        let mut part: Vec<(usize, Packet)> = Vec::new();
        let mut flush = |part: &mut Vec<(usize, Packet)>, lane: &mut Lane<'_>| {
            let (places, packets): (Vec<usize>, Vec<Packet>) = part.drain(..).unzip();
            let theirs: Vec<u32> = (places.iter())
                .map(|at| cpus.get(*at).copied().unwrap_or(0))
                .collect();
            for (at, did) in places.into_iter().zip(lane.work(&packets, Some(&theirs))) {
                if let Some(place) = done.get_mut(at) {
                    *place = did;
                }
            }
        };
        for place in places {
            if let Some(at) = place.packet.and_then(|number| at.get(&number)).copied()
                && let Some(packet) = window.get(at)
            {
                let did = parallel.get(at).and_then(Option::as_ref);
                let time = did.map_or(packet.time, |d| d.outcome.time);
                part.push((
                    at,
                    Packet {
                        time,
                        ..packet.clone()
                    },
                ));
            }
            if !place.removed.is_empty() {
                flush(&mut part, &mut self.sequential);
                if let Some(copy) = self.sequential.copies.first_mut() {
                    let allocators = copy.allocators();
                    for gone in &place.removed {
                        let mut key = gone.key.clone();
                        if allocators.contains(&gone.object) {
                            // The number of the same lease; one that no packet showed expires by itself.
                            let theirs = small(&key);
                            let ours = self.bijection.sequential(gone.object, 0, theirs);
                            let Some(ours) = ours else { continue };
                            key = ours.to_le_bytes().into_iter().take(key.len()).collect();
                        }
                        copy.expire(gone.object, &key, gone.time);
                    }
                }
            }
        }
        flush(&mut part, &mut self.sequential);
        done
    }

    /// Faults in the order of packets that are no packet's, told once.
    pub fn beyond(&mut self) -> Vec<String> {
        std::mem::take(&mut self.beyond)
    }

    /// What packets did as transactions; none where they are none.
    #[must_use]
    pub fn transactions(&self) -> Option<Transactions> {
        let seen = self.history.as_ref()?.seen;
        Some(Transactions {
            committed: seen.committed,
            aborted: self.parallel.copies.iter().map(|c| c.aborted()).sum(),
            alone: seen.alone,
            decisions: seen.decisions,
            accesses: seen.accesses,
            dependencies: seen.dependencies,
        })
    }

    fn step(
        &mut self,
        mut sequential: Done,
        mut parallel: Done,
        packet: &Packet,
        named: Option<(u16, u16)>,
    ) -> Step {
        let mut found = compare(&sequential, &parallel, named, &Alike::new());
        if found == Found::Differs(Kind::Bytes) {
            found = self.by_leases(&mut sequential, &mut parallel, packet.time, named);
        }
        let mut why = None;
        if let Found::Leases(pairs) = &mut found {
            // What is one for all workers is the first one's.
            let shared = pairs.iter_mut().filter(|p| self.shared.contains(&p.object));
            shared.for_each(|p| p.worker = 0);
            let mut bad = None;
            for pair in pairs {
                let (one, other) = (&mut self.sequential, &mut self.parallel);
                if let Err(what) = self.bijection.admit(pair, one, other, packet.time) {
                    bad = Some(what);
                }
            }
            match bad {
                Some(what) => {
                    why = Some(what);
                    found = Found::Differs(Kind::Lease);
                }
                None => self.bijection.packets += 1,
            }
        }
        if !matches!(found, Found::Differs(_)) && !self.same_records(&sequential, &parallel) {
            found = Found::Differs(Kind::Records);
        }
        if let Some(what) = self.overtaken(&parallel, packet.port)
            && !matches!(found, Found::Differs(_))
        {
            why = Some(what);
            found = Found::Differs(Kind::Order);
        }
        Step {
            sequential,
            parallel,
            found,
            why,
        }
    }

    /// The comparison once more, with leases that the first one did not see.
    fn by_leases(
        &mut self,
        sequential: &mut Done,
        parallel: &mut Done,
        now: u64,
        named: Option<(u16, u16)>,
    ) -> Found {
        unchanged(sequential, parallel, &mut self.parallel, now);
        unchanged(parallel, sequential, &mut self.sequential, now);
        let allocators = self.sequential.copies.first();
        let mut lanes = Lanes {
            allocators: allocators.map_or_else(Vec::new, Copy::allocators),
            sequential: &mut self.sequential,
            parallel: &mut self.parallel,
            now,
            looks: LOOKS,
        };
        let (alike, inner) = lanes.alike(sequential, parallel);
        let mut found = compare(sequential, parallel, named, &alike);
        if let Found::Leases(pairs) = &mut found {
            pairs.extend(inner);
        }
        found
    }

    /// Whether both left the same records, up to leased numbers in them. Whose packet left a record is not told by a buffer that
    /// workers share: none of those are compared.
    fn same_records(&mut self, sequential: &Done, parallel: &Done) -> bool {
        let shared = |object| (self.parallel.copies.first()).is_some_and(|c| c.is_shared(object));
        let ones = sequential.outcome.records.iter();
        let ones: Vec<&(usize, Vec<u8>)> = ones.filter(|(object, _)| !shared(*object)).collect();
        let others: Vec<&(usize, Vec<u8>)> = parallel.outcome.records.iter().collect();
        if ones == others {
            return true;
        }
        let worker = parallel.outcome.worker;
        let now = parallel.outcome.time;
        ones.len() == others.len()
            && ones
                .into_iter()
                .zip(others)
                .all(|((object, a), (other, b))| {
                    object == other && same_but(a, b, |a, b| self.same_lease(worker, a, b, now))
                })
    }

    /// Whether a number of the sequential side and a worker's are of one lease.
    fn same_lease(&mut self, worker: u32, here: u64, there: u64, now: u64) -> bool {
        let one = self.sequential.copies.first_mut();
        let allocators = one.as_ref().map_or_else(Vec::new, |c| c.allocators());
        allocators.into_iter().any(|object| {
            let worker = if self.shared.contains(&object) {
                0
            } else {
                worker
            };
            if self.bijection.sequential(object, worker, there) == Some(here) {
                return true;
            }
            let lease =
                |lane: &mut Lane<'_>, worker: u32, number| lane.leased(worker, object, number, now);
            let Some(value) = lease(&mut self.sequential, 0, here) else {
                return false;
            };
            if lease(&mut self.parallel, worker, there).as_ref() != Some(&value) {
                return false;
            }
            let pair = Pair {
                object,
                sequential: here,
                worker,
                parallel: there,
                kept: value.clone(),
                value,
            };
            let (one, other) = (&mut self.sequential, &mut self.parallel);
            self.bijection.admit(&pair, one, other, now).is_ok()
        })
    }

    /// Packets of a flow keep their order if one worker has them all, and does them in order. Which are of one flow the
    /// steering says ([`crate::Dispatch::read`]).
    fn overtaken(&mut self, done: &Done, port: u32) -> Option<String> {
        let mut hasher = DefaultHasher::new();
        self.parallel.flow(port, &done.given)?.hash(&mut hasher);
        let (worker, turn) = (done.outcome.worker, done.outcome.turn);
        let flow = hasher.finish();
        if self.flows.len() >= MOST_FLOWS && !self.flows.contains_key(&flow) {
            return None;
        }
        let (was, before) = self.flows.insert(flow, (worker, turn))?;
        if was != worker && self.parallel.table.is_none() {
            return Some(format!(
                "the packet before it of the same flow went to worker {was}, this one to worker {worker}: nothing \
                 keeps their order"
            ));
        }
        (before > turn).then(|| "a later packet of the same flow was done before it".to_owned())
    }

    /// Compares the state of both, after the last packet at `now` (ns).
    pub fn state(&mut self, program: &Program, deal: &Deal<'_>, now: u64) -> StateFound {
        let (one, other) = (&mut self.sequential, &mut self.parallel);
        let how = (deal, self.shares.as_slice());
        state::compare(program, how, &self.base, one, other, &self.bijection, now)
    }

    /// Looks whether entries lie where their keys say, after the last packet at `now` (ns).
    pub fn lying(&mut self, program: &Program, deal: &Deal<'_>, now: u64) -> Lying {
        state::lying(program, deal, &self.base, &mut self.parallel, now)
    }
}
