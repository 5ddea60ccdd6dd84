//! Runs of a function over the captures, and what a packet takes in them.

use std::sync::{Arc, Mutex, PoisonError};

use millrace::{Function, Job, Ports};
use millrace_dataplane::account::Account;
use millrace_dataplane::counters::{Counters, Counts};
use millrace_dataplane::mailbox::Mailbox;
use millrace_dataplane::probe::Probe;
use millrace_place::Held;

use super::STOP;
use crate::failure::Failure;

/// Turns in which it is measured what a packet costs on one core, and what as it runs.
const BESIDE: usize = 5;
/// A turn is at the mercy of whatever else runs: so long, where nothing else is asked for, ns.
const TURN: f64 = 25e6;
/// Rounds at most that are chosen for it.
const ROUNDS: u64 = 10_000;

/// What happened, where the workers were, and what their processors counted, or why they did not.
pub type Looked = (Account, Vec<usize>, Result<Counts, String>);

/// How a function is run.
#[derive(Clone, Copy)]
pub struct Runs<'a> {
    /// the captures
    pub ports: &'a Ports,
    /// workers
    pub cores: usize,
    /// rounds over captures in memory
    pub rounds: u64,
}

impl<'a> Runs<'a> {
    /// As many rounds as a turn of 25 ms takes, where none are asked for and the captures are in memory.
    pub fn new(
        ports: &'a Ports,
        cores: usize,
        asked: Option<u64>,
        base: &Function,
    ) -> Result<Self, Failure> {
        let mut runs = Self {
            ports,
            cores,
            rounds: asked.unwrap_or(1),
        };
        let in_memory = ports.inputs.iter().all(|w| w.starts_with("mem:"));
        // The first rounds fill tables and caches, and take longer than others.
        while asked.is_none() && in_memory && runs.rounds < ROUNDS {
            let account = runs.run(base, true)?;
            let took = account.function.ns_per_packet * account.read as f64 / cores as f64;
            if took >= TURN / 2.0 {
                break;
            }
            let more = (TURN / took.max(1.0)).clamp(2.0, 10.0);
            runs.rounds = ((runs.rounds as f64 * more) as u64).min(ROUNDS);
        }
        Ok(runs)
    }

    /// What happened, where the workers were, and what their processors counted.
    pub fn looked(&self, function: &Function) -> Result<Looked, Failure> {
        let workers = self.cores.min(function.workers.max(1));
        let mailboxes: Vec<Arc<Mailbox>> = (0..workers).map(|_| Arc::default()).collect();
        let probes: Arc<Mutex<Vec<Probe>>> = Arc::default();
        let counters: Arc<Mutex<Vec<Result<Counters, String>>>> = Arc::default();
        for mailbox in &mailboxes {
            let (probes, counters) = (probes.clone(), counters.clone());
            mailbox.post(Box::new(move |_| {
                let mut probes = probes.lock().unwrap_or_else(PoisonError::into_inner);
                probes.extend(Probe::begin());
                let mut counters = counters.lock().unwrap_or_else(PoisonError::into_inner);
                counters.push(Counters::begin());
            }));
        }
        let account = self.run_with(function, (true, workers), mailboxes)?;
        let mut probes = probes.lock().unwrap_or_else(PoisonError::into_inner);
        let places = probes.drain(..).flat_map(Probe::end).collect();
        let mut counters = counters.lock().unwrap_or_else(PoisonError::into_inner);
        let counters = Counters::sum(counters.drain(..));
        Ok((account, places, counters))
    }

    fn run(&self, function: &Function, prefetch: bool) -> Result<Account, Failure> {
        self.run_with(function, (prefetch, self.cores), Vec::new())
    }

    fn run_with(
        &self,
        function: &Function,
        (prefetch, workers): (bool, usize),
        mailboxes: Vec<Arc<Mailbox>>,
    ) -> Result<Account, Failure> {
        let link = function.link(0, Vec::new(), prefetch)?;
        let mut job = Job {
            chain: vec![link],
            loops: Some(self.rounds),
            mailboxes,
            ..Job::of(function, self.ports)?
        };
        job.workers = workers.min(function.workers.max(1));
        let opened = job.open(self.ports, &STOP)?;
        opened.run(&STOP, &mut |_| {})
    }

    /// ns a packet on one worker, of state that any worker may have, and on all. On one the least of several turns, since other work on
    /// the machine only adds to it; on all their median, since how long they wait for each other is no addition.
    pub fn beside(&self, base: &Function) -> Result<(Option<f64>, f64), Failure> {
        let places = base.placement.iter().flat_map(|p| &p.objects);
        let owned = |held: &Held| matches!(held, Held::Divided | Held::Alone);
        let any = !places.map(|place| &place.held).any(owned);
        let least = |all: Vec<f64>| all.into_iter().fold(f64::INFINITY, f64::min);
        let solo = any.then(|| self.turns(base, 1).map(least)).transpose()?;
        Ok((solo, Measure::of(self.turns(base, self.cores)?).median))
    }

    /// ns a packet, of several turns.
    fn turns(&self, function: &Function, workers: usize) -> Result<Vec<f64>, Failure> {
        let turn = |_| {
            let account = self.run_with(function, (true, workers), Vec::new())?;
            Ok(account.function.ns_per_packet)
        };
        (0..BESIDE).map(turn).collect()
    }

    /// Throughput of each of the changed over that of what there is, in turns of all; of one that does not run, why. What there is runs
    /// before and behind each turn, so that a machine that becomes slower meanwhile favours neither.
    pub fn gains(
        &self,
        base: &Function,
        changed: &[&Function],
        turns: usize,
    ) -> Result<Vec<Result<Measure, Failure>>, Failure> {
        let mut gains: Vec<Result<Vec<f64>, Failure>> = Vec::new();
        gains.resize_with(changed.len(), || Ok(Vec::with_capacity(turns)));
        let mut before = ns(&self.run(base, true)?);
        for _ in 0..turns {
            let all = changed.iter().zip(&gains).map(|(changed, gains)| {
                let runs = gains.is_ok().then(|| self.run(changed, true));
                runs.map(|account| account.map(|a| ns(&a)))
            });
            let all: Vec<Option<Result<f64, Failure>>> = all.collect();
            let behind = ns(&self.run(base, true)?);
            for (is, gains) in all.into_iter().zip(&mut gains) {
                match (is, &mut *gains) {
                    (Some(Ok(is)), Ok(all)) => all.push(f64::midpoint(before, behind) / is),
                    (Some(Err(failure)), _) => *gains = Err(failure),
                    _ => {}
                }
            }
            before = behind;
        }
        Ok(gains.into_iter().map(|g| g.map(Measure::of)).collect())
    }

    /// Throughput with the prefetch pass over that without it.
    pub fn prefetch(&self, base: &Function, turns: usize) -> Result<Measure, Failure> {
        let turn = |_| {
            let with = ns(&self.run(base, true)?);
            Ok(ns(&self.run(base, false)?) / with)
        };
        let gains: Result<Vec<f64>, Failure> = (0..turns).map(turn).collect();
        gains.map(Measure::of)
    }
}

/// What came out in several turns.
#[derive(Clone, Copy)]
pub struct Measure {
    /// the least
    pub low: f64,
    /// half of them are above it, half below
    pub median: f64,
    /// the greatest
    pub high: f64,
}

impl Measure {
    fn of(mut all: Vec<f64>) -> Self {
        all.sort_by(f64::total_cmp);
        let at = |index: usize| all.get(index).copied().unwrap_or(1.0);
        let last = all.len().saturating_sub(1);
        Self {
            low: at(0),
            median: f64::midpoint(at(last / 2), at(all.len() / 2)),
            high: at(last),
        }
    }
}

/// What a packet takes inside the function, waiting included.
fn ns(account: &Account) -> f64 {
    account.function.ns_per_packet.max(0.01)
}
