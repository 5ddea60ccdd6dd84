//! What a worker counts, and the account that can be made of it at any moment between two bursts.

use std::collections::BTreeMap;

use crate::account::{Account, Function, PortAccount, WorkerAccount};
use crate::clock::Rate;
use crate::histogram::Histogram;

/// The counters of one worker.
pub struct Tally {
    pub account: Account,
    /// packets dropped, by index of the reason
    pub dropped: Vec<u64>,
    /// reasons that are not the program's
    pub other: BTreeMap<String, u64>,
    pub worker: WorkerAccount,
    /// ticks inside the function
    pub ticks: u64,
    /// ticks a packet
    pub each: Histogram,
}

impl Tally {
    /// Nothing yet, for ports of these names and so many reasons.
    pub fn new(ports: &[String], reasons: usize) -> Self {
        let ports = ports.iter().map(|name| PortAccount {
            name: name.clone(),
            ..Default::default()
        });
        Self {
            account: Account {
                ports: ports.collect(),
                ..Account::default()
            },
            dropped: vec![0; reasons],
            other: BTreeMap::new(),
            worker: WorkerAccount::default(),
            ticks: 0,
            each: Histogram::default(),
        }
    }

    /// One burst more.
    pub fn burst(&mut self, ticks: u64, packets: u64) {
        self.ticks += ticks;
        self.each.add(ticks as f64 / packets as f64, packets);
        self.worker.bursts += 1;
        self.worker.packets += packets;
    }

    /// The account up to here; `reasons` are the names of `dropped`.
    pub fn account(&self, reasons: &[String], rate: &Rate) -> Account {
        let mut account = self.account.clone();
        account.seconds = rate.elapsed().as_secs_f64();
        let tick = rate.ns_per_tick();
        let ns = self.ticks as f64 * tick;
        account.function = Function::over(self.worker.packets, ns, &self.each, tick);
        if account.seconds > 0.0 {
            account.mpps = account.read as f64 / account.seconds / 1e6;
        }
        account.workers.push(WorkerAccount {
            seconds: ns / 1e9,
            ..self.worker
        });
        account.reasons = self.other.clone();
        for (name, packets) in reasons.iter().zip(&self.dropped) {
            if *packets > 0 {
                *account.reasons.entry(name.clone()).or_default() += packets;
            }
        }
        account
    }
}
