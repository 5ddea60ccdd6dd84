//! The answers of a run to `stats`, and their differences.

use std::collections::BTreeMap;

use millrace_dataplane::account::{
    EntryAccount, PortAccount, QueueAccount, StageAccount, WorkerAccount,
};
use millrace_dataplane::replica::Elephant;
use serde::Deserialize;

/// The answer to `stats` (docs/control.md).
#[derive(Clone, Debug, Default, Deserialize)]
pub struct Stats {
    /// of the run
    pub name: String,
    /// one a worker
    pub accounts: Vec<Account>,
}

/// Counts of one worker since the run began.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Account {
    /// its age
    pub seconds: f64,
    pub read: u64,
    pub dropped: u64,
    pub aborted: u64,
    pub reasons: BTreeMap<String, u64>,
    pub ports: Vec<PortAccount>,
    /// the worker itself
    pub workers: Vec<WorkerAccount>,
    /// its heaviest entry, where that is known
    pub entries: Vec<EntryAccount>,
    /// none where one function runs over captures
    pub stages: Vec<StageAccount>,
    pub queues: Vec<QueueAccount>,
    /// keys that are replicated while others are sharded; the first worker's account has them
    pub elephants: Vec<Elephant>,
}

impl Account {
    /// The worker's own counts.
    pub fn worker(&self) -> WorkerAccount {
        self.workers.first().copied().unwrap_or_default()
    }

    /// Packets that ports lost before this worker saw them.
    pub fn missed(&self) -> u64 {
        self.queues.iter().map(|q| q.missed).sum()
    }
}

/// One worker between two answers.
pub struct Step<'a> {
    before: &'a Account,
    /// what it has counted by now
    pub now: &'a Account,
    seconds: f64,
}

impl Step<'_> {
    /// How fast a count goes up, a second.
    pub fn rate(&self, count: impl Fn(&Account) -> u64) -> f64 {
        per(self.more(count) as f64, self.seconds)
    }

    /// How much a count has gone up.
    pub fn more(&self, count: impl Fn(&Account) -> u64) -> u64 {
        // A count that went down is of another run.
        count(self.now).saturating_sub(count(self.before))
    }

    /// How much a time has gone up, seconds.
    pub fn longer(&self, time: impl Fn(&Account) -> f64) -> f64 {
        (time(self.now) - time(self.before)).max(0.0)
    }

    /// Seconds between the two.
    pub fn seconds(&self) -> f64 {
        self.seconds
    }
}

/// The workers between two answers. One that was not there before is taken from its beginning on.
pub fn steps<'a>(before: &'a Stats, now: &'a Stats, none: &'a Account) -> Vec<Step<'a>> {
    let pairs = now.accounts.iter().enumerate().map(|(number, now)| {
        let before = before.accounts.get(number).unwrap_or(none);
        Step {
            before,
            now,
            seconds: (now.seconds - before.seconds).max(0.0),
        }
    });
    pairs.collect()
}

/// A share of a whole; of nothing it is 0.
pub fn per(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { part / whole } else { 0.0 }
}
