//! What a worker counts, and the account that can be made of it at any moment between two bursts.

use std::collections::BTreeMap;

use crate::account::{
    ABORTED, Account, Function, NO_OTHER_PORT, NO_SUCH_PORT, PortAccount, WorkerAccount,
};
use crate::clock::Rate;
use crate::histogram::Histogram;
use crate::packet::{Fate, Outcome};

/// Where a packet goes after the function.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Leaves {
    /// it stays here
    Nowhere,
    /// it leaves at this port
    At(u32),
    /// it leaves at every port but the one that it came from
    AtOthers,
    /// to the host's own stack
    ToHost,
}

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

    /// Gives a packet its fate, and says where it goes; `ports` is how many there are.
    pub fn settle(&mut self, packet: &Outcome<'_>, ports: u32) -> Leaves {
        let from = packet.arrival.port;
        let (fate, leaves) = match packet.fate {
            Fate::Forwarded(port) if port >= ports => {
                count(&mut self.other, NO_SUCH_PORT);
                (Fate::Aborted, Leaves::Nowhere)
            }
            Fate::Forwarded(port) => {
                self.account.sent(port, packet.bytes.len());
                (packet.fate, Leaves::At(port))
            }
            Fate::Flooded if ports < 2 => {
                count(&mut self.other, NO_OTHER_PORT);
                (Fate::Dropped(0), Leaves::Nowhere)
            }
            Fate::Flooded => {
                for port in (0..ports).filter(|p| *p != from) {
                    self.account.sent(port, packet.bytes.len());
                }
                self.account.created += u64::from(ports.saturating_sub(2));
                (packet.fate, Leaves::AtOthers)
            }
            Fate::Dropped(reason) => {
                match self.dropped.get_mut(reason as usize) {
                    Some(n) => *n += 1,
                    None => count(&mut self.other, &format!("reason_{reason}")),
                }
                (packet.fate, Leaves::Nowhere)
            }
            Fate::Passed => (packet.fate, Leaves::ToHost),
            Fate::Aborted => {
                count(&mut self.other, ABORTED);
                (packet.fate, Leaves::Nowhere)
            }
            Fate::Consumed => (packet.fate, Leaves::Nowhere),
        };
        self.account.became(from, fate);
        leaves
    }

    /// Adds what another worker has counted, but for the bursts and packets of that worker.
    pub fn add(&mut self, other: &Self) {
        self.account.add(&other.account);
        for (all, more) in self.dropped.iter_mut().zip(&other.dropped) {
            *all += more;
        }
        for (name, more) in &other.other {
            *self.other.entry(name.clone()).or_default() += more;
        }
        self.ticks += other.ticks;
        self.each.merge(&other.each);
    }

    /// The account up to here; `reasons` are the names of `dropped`.
    pub fn account(&self, reasons: &[String], rate: &Rate) -> Account {
        let mut account = self.account.clone();
        account.seconds = rate.elapsed().as_secs_f64();
        let tick = rate.ns_per_tick();
        let ns = self.ticks as f64 * tick;
        account.function = Function::over(self.each.total(), ns, &self.each, tick);
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

/// Counts one more of what has this name.
pub fn count(counts: &mut BTreeMap<String, u64>, name: &str) {
    match counts.get_mut(name) {
        Some(n) => *n += 1,
        None => {
            counts.insert(name.to_owned(), 1);
        }
    }
}
