//! Both sides together, going through a trace in step.

use std::collections::hash_map::DefaultHasher;
use std::collections::{BTreeSet, HashMap};
use std::hash::{Hash, Hasher};

use millrace_dataplane::module::ModuleError;
use millrace_object::program::Program;

use crate::compare::{Found, Kind, compare};
use crate::deal::{Deal, Held};
use crate::lane::{Done, Lane, Start};
use crate::lease::Bijection;
use crate::schedule::Schedule;
use crate::state::{self, Base, Lying, StateFound};
use crate::trace::Packet;
use crate::tuple::Places;

/// Flows whose order is watched.
const MOST_FLOWS: usize = 1 << 22;

/// The sequential program and the parallel one.
pub struct Sides<'a> {
    /// one copy
    pub sequential: Lane<'a>,
    /// a copy for each worker
    pub parallel: Lane<'a>,
    /// which leases stand for which
    pub bijection: Bijection,
    base: Base,
    /// the objects that workers share
    shared: BTreeSet<usize>,
    /// by flow: worker and turn of its last packet
    flows: HashMap<u64, (u32, u64)>,
}

/// What both sides did with a packet, and what differs.
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
        deal: &'a Deal<'a>,
        schedule: Schedule,
    ) -> Result<Self, ModuleError> {
        Ok(Self {
            sequential: Lane::sequential(sequential)?,
            parallel: Lane::parallel(parallel, deal.workers, deal.dispatch, schedule)?,
            bijection: Bijection::default(),
            base: Base::new(),
            shared: (0..deal.held.len())
                .filter(|i| deal.shares() && deal.held.get(*i) == Some(&Held::Shared))
                .collect(),
            flows: HashMap::new(),
        })
    }

    /// Runs `ON_START` at a time (ns); the state afterwards is what packets change.
    pub fn start(&mut self, program: &Program, deal: &Deal<'_>, time: u64) {
        self.sequential.start(time);
        self.parallel.start(time);
        self.sequential.take_records();
        self.parallel.take_records();
        self.base = state::base(program, &deal.held, &mut self.sequential, time);
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
    pub fn work(&mut self, window: &[Packet]) -> Vec<Step> {
        let parallel = self.parallel.work(window, None);
        let cpus: Vec<u32> = parallel
            .iter()
            .map(|d| d.as_ref().map_or(0, |d| d.outcome.worker))
            .collect();
        let sequential = if self.parallel.shares {
            self.in_order(window, &cpus, &parallel)
        } else {
            self.sequential.work(window, Some(&cpus))
        };
        let pairs = sequential.into_iter().zip(parallel).zip(window);
        pairs
            .filter_map(|((one, other), packet)| Some(self.step(one?, other?, packet)))
            .collect()
    }

    /// The sequential program does what the workers did in the order in which they committed it.
    fn in_order(
        &mut self,
        window: &[Packet],
        cpus: &[u32],
        parallel: &[Option<Done>],
    ) -> Vec<Option<Done>> {
        let commit = |i: &usize| {
            let done = parallel.get(*i).and_then(Option::as_ref);
            // Equal ones by the packets' numbers, which ascend.
            (done.map_or(u64::MAX, |d| d.outcome.commit), *i)
        };
        let mut order: Vec<usize> = (0..window.len()).collect();
        order.sort_by_key(commit);
        let ordered: Vec<Packet> = order
            .iter()
            .filter_map(|i| window.get(*i).cloned())
            .collect();
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

    fn step(&mut self, sequential: Done, parallel: Done, packet: &Packet) -> Step {
        let mut found = compare(&sequential, &parallel);
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

    /// Packets of a flow keep their order if one worker has them all, and does them in order.
    fn overtaken(&mut self, done: &Done, port: u32) -> Option<String> {
        let tuple = Places::of(&done.given)?.tuple(&done.given)?;
        let mut hasher = DefaultHasher::new();
        (port, tuple).hash(&mut hasher);
        let (worker, turn) = (done.outcome.worker, done.outcome.turn);
        let flow = hasher.finish();
        if self.flows.len() >= MOST_FLOWS && !self.flows.contains_key(&flow) {
            return None;
        }
        let (was, before) = self.flows.insert(flow, (worker, turn))?;
        if was != worker {
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
        let (held, base) = (&deal.held, &self.base);
        state::compare(program, held, base, one, other, &self.bijection, now)
    }

    /// Looks whether entries lie where their keys say, after the last packet at `now` (ns).
    pub fn lying(&mut self, program: &Program, deal: &Deal<'_>, now: u64) -> Lying {
        state::lying(program, deal, &mut self.parallel, now)
    }
}
