//! The figures of one moment: rates between two answers of a run, by worker, port, function and reason.

use std::collections::BTreeMap;

use millrace_dataplane::account::{GuestAccount, PortAccount, QueueAccount, StageAccount};
use serde::Serialize;

use super::sample::{Account, Stats, Step, per, steps};

/// All figures. Rates are a second, times of functions ns a packet.
#[derive(Debug, Default, Serialize)]
pub struct View {
    /// of the run
    pub name: String,
    /// its age, seconds
    pub seconds: f64,
    /// the time that rates are over, seconds
    pub interval: f64,
    /// packets that came in
    pub packets_per_second: f64,
    /// packets dropped or aborted
    pub lost_per_second: f64,
    /// packets that ports lost: that came and were not received, or were not sent
    pub lost_by_ports_per_second: f64,
    /// the busiest worker's packets over the mean of all workers: 1 is even, their number is all on one; packets
    /// that its ports lost count as its own
    pub imbalance: f64,
    pub workers: Vec<Worker>,
    /// the heaviest entries of indirection tables, one a worker, most packets first
    pub entries: Vec<Entry>,
    pub ports: Vec<Port>,
    pub functions: Vec<Function>,
    pub reasons: Vec<Reason>,
    pub queues: Vec<Queue>,
    /// keys that are replicated now while others are sharded, most packets first
    pub elephants: Vec<Heavy>,
    /// the programs of others in the chain
    pub guests: Vec<Guest>,
}

/// A worker.
#[derive(Debug, Serialize)]
pub struct Worker {
    pub worker: u32,
    pub packets_per_second: f64,
    /// dropped or aborted
    pub lost_per_second: f64,
    /// lost by its ports before it saw them
    pub missed_per_second: f64,
    /// its part of all packets that came, those included that its ports lost, 0 to 1
    pub share: f64,
    pub ns_per_packet: f64,
    pub bursts_per_second: f64,
    pub packets_per_burst: f64,
    /// share of the time inside functions, 0 to 1
    pub inside: f64,
    /// insertions that found its part of a divided object full
    pub full_per_second: f64,
    /// rows that it has not applied yet, where state is replicated
    pub behind: Option<u64>,
}

/// The entry of an indirection table under which most packets of a worker came in the last second.
#[derive(Debug, Serialize)]
pub struct Entry {
    pub port: String,
    pub entry: u32,
    /// how many the table has
    pub entries: u32,
    /// the worker that it leads to
    pub worker: u32,
    /// its part of all packets that came to all workers, 0 to 1
    pub share: f64,
}

/// A port of the function.
#[derive(Debug, Serialize)]
pub struct Port {
    pub name: String,
    pub in_per_second: f64,
    pub in_bits_per_second: f64,
    pub out_per_second: f64,
    pub out_bits_per_second: f64,
    /// of those that came in here
    pub dropped_per_second: f64,
    pub passed_per_second: f64,
    pub consumed_per_second: f64,
    pub aborted_per_second: f64,
}

/// An element of the chain.
#[derive(Debug, Serialize)]
pub struct Function {
    pub name: String,
    pub packets_per_second: f64,
    pub ns_per_packet: f64,
    /// cycles of the time stamp counter; none where its rate is not known
    pub cycles_per_packet: Option<f64>,
    /// of the time in all elements, 0 to 1
    pub share: f64,
    pub bursts_per_second: f64,
    pub packets_per_burst: f64,
}

/// A key that is replicated while others are sharded.
#[derive(Debug, Serialize)]
pub struct Heavy {
    /// a packet of it: addresses, ports, protocol
    pub flow: String,
    pub packets_per_second: f64,
    /// since it was promoted
    pub packets: u64,
    /// the row that promoted it
    pub promoted: u64,
}

/// Why packets were dropped or aborted.
#[derive(Debug, Serialize)]
pub struct Reason {
    pub reason: String,
    pub packets_per_second: f64,
    /// since the run began
    pub packets: u64,
}

/// Losses of a live port, over its queues.
#[derive(Debug, Serialize)]
pub struct Queue {
    pub name: String,
    pub missed_per_second: f64,
    pub unfit_per_second: f64,
    pub failed_per_second: f64,
    pub discarded_per_second: f64,
}

/// A program that an element hosts.
#[derive(Debug, Serialize)]
pub struct Guest {
    /// the element
    pub name: String,
    #[serde(flatten)]
    pub account: GuestAccount,
}

impl View {
    /// Differences of two answers.
    pub fn between(before: &Stats, now: &Stats) -> Self {
        let none = Account::default();
        let steps = steps(before, now, &none);
        let oldest = |of: fn(&Step<'_>) -> f64| steps.iter().map(of).fold(0.0, f64::max);
        let came = sum(&steps, came);
        let workers: Vec<Worker> = steps.iter().map(|s| worker(s, came)).collect();
        let busiest = workers.iter().map(|w| w.share).fold(0.0, f64::max);
        Self {
            // Before anything came nothing is uneven.
            imbalance: if came > 0.0 {
                busiest * workers.len() as f64
            } else {
                1.0
            },
            name: now.name.clone(),
            seconds: oldest(|s| s.now.seconds),
            interval: oldest(|s| s.seconds()),
            packets_per_second: sum(&steps, |a| a.read),
            lost_per_second: sum(&steps, |a| a.dropped + a.aborted),
            lost_by_ports_per_second: sum(&steps, |a| {
                a.queues.iter().map(|q| q.missed + q.unfit + q.failed).sum()
            }),
            entries: entries(&steps, &workers),
            workers,
            ports: ports(&steps),
            functions: functions(&now.name, &steps),
            reasons: reasons(&steps),
            queues: queues(&steps),
            elephants: elephants(&steps),
            guests: guests(now),
        }
    }
}

/// A rate over all workers.
fn sum(steps: &[Step<'_>], count: impl Fn(&Account) -> u64) -> f64 {
    steps.iter().map(|s| s.rate(&count)).sum()
}

/// Packets that came to a worker, whether it saw them or its ports lost them.
fn came(account: &Account) -> u64 {
    account.worker().packets + account.missed()
}

fn worker(step: &Step<'_>, all: f64) -> Worker {
    let inside = step.longer(|a| a.worker().seconds);
    let packets = step.more(|a| a.worker().packets) as f64;
    let bursts = step.more(|a| a.worker().bursts) as f64;
    Worker {
        worker: step.now.worker().worker,
        packets_per_second: step.rate(|a| a.worker().packets),
        lost_per_second: step.rate(|a| a.dropped + a.aborted),
        missed_per_second: step.rate(Account::missed),
        share: per(step.rate(came), all),
        ns_per_packet: per(inside * 1e9, packets),
        bursts_per_second: step.rate(|a| a.worker().bursts),
        packets_per_burst: per(packets, bursts),
        inside: per(inside, step.seconds()),
        full_per_second: step.rate(|a| a.worker().full),
        behind: step.now.worker().behind,
    }
}

/// A worker tells what part an entry has of its own packets. Those that its ports lost are taken to be alike.
fn entries(steps: &[Step<'_>], workers: &[Worker]) -> Vec<Entry> {
    let told = steps.iter().zip(workers);
    let told = told.flat_map(|(step, worker)| step.now.entries.iter().map(move |e| (e, worker)));
    let mut all: Vec<Entry> = told
        .map(|(e, worker)| Entry {
            port: e.port.clone(),
            entry: e.entry,
            entries: e.entries,
            worker: e.worker,
            share: e.share * worker.share,
        })
        .collect();
    all.sort_by(|a, b| b.share.total_cmp(&a.share));
    all
}

fn ports(steps: &[Step<'_>]) -> Vec<Port> {
    let first = steps.first().map_or(&[][..], |s| &s.now.ports);
    let all = first.iter().enumerate().map(|(index, port)| {
        let rate = |of: fn(&PortAccount) -> u64| sum(steps, |a| a.ports.get(index).map_or(0, of));
        Port {
            name: port.name.clone(),
            in_per_second: rate(|p| p.read),
            in_bits_per_second: rate(|p| p.read_bytes) * 8.0,
            out_per_second: rate(|p| p.sent),
            out_bits_per_second: rate(|p| p.sent_bytes) * 8.0,
            dropped_per_second: rate(|p| p.dropped),
            passed_per_second: rate(|p| p.passed),
            consumed_per_second: rate(|p| p.consumed),
            aborted_per_second: rate(|p| p.aborted),
        }
    });
    all.collect()
}

/// The functions in their order; over captures there is one, which is all that the worker does.
fn functions(run: &str, steps: &[Step<'_>]) -> Vec<Function> {
    let stages = steps.first().map_or(&[][..], |s| &s.now.stages);
    let all_inside: f64 = steps.iter().map(|s| s.longer(|a| a.worker().seconds)).sum();
    // By name: the chain may have changed between the two answers.
    let of = |name: &str, one: bool| {
        let at = |a: &Account| match one {
            false => {
                let mut own = a.stages.iter().filter(|s| s.name == name && !s.left);
                own.next().cloned().unwrap_or_default()
            }
            true => {
                let worker = a.worker();
                StageAccount {
                    packets: worker.packets,
                    bursts: worker.bursts,
                    seconds: worker.seconds,
                    ..Default::default()
                }
            }
        };
        let more = |of: fn(&StageAccount) -> u64| -> u64 {
            steps.iter().map(|s| s.more(|a| of(&at(a)))).sum()
        };
        let inside: f64 = steps.iter().map(|s| s.longer(|a| at(a).seconds)).sum();
        let packets = more(|s| s.packets) as f64;
        let now: Vec<_> = steps.iter().map(|s| at(s.now)).collect();
        let cycles: f64 = now
            .iter()
            .map(|s| s.cycles_per_packet * s.packets as f64)
            .sum();
        let seconds: f64 = now.iter().map(|s| s.seconds).sum();
        let ns = per(inside * 1e9, packets);
        Function {
            cycles_per_packet: (cycles > 0.0 && seconds > 0.0)
                .then(|| ns * cycles / (seconds * 1e9)),
            share: per(inside, all_inside),
            name: name.to_owned(),
            packets_per_second: sum(steps, |a| at(a).packets),
            ns_per_packet: ns,
            bursts_per_second: sum(steps, |a| at(a).bursts),
            packets_per_burst: per(packets, more(|s| s.bursts) as f64),
        }
    };
    match stages {
        [] if steps.is_empty() => Vec::new(),
        [] => vec![of(run, true)],
        stages => {
            let there = stages.iter().filter(|s| !s.left);
            there.map(|stage| of(&stage.name, false)).collect()
        }
    }
}

fn reasons(steps: &[Step<'_>]) -> Vec<Reason> {
    let mut totals: BTreeMap<&str, u64> = BTreeMap::new();
    for (reason, packets) in steps.iter().flat_map(|s| &s.now.reasons) {
        *totals.entry(reason).or_default() += packets;
    }
    let all = totals.into_iter().map(|(reason, packets)| Reason {
        reason: reason.to_owned(),
        packets_per_second: sum(steps, |a| a.reasons.get(reason).copied().unwrap_or(0)),
        packets,
    });
    all.collect()
}

/// The first worker's account has them all. The row of its promotion tells a key from the same one promoted before.
fn elephants(steps: &[Step<'_>]) -> Vec<Heavy> {
    let Some(first) = steps.first() else {
        return Vec::new();
    };
    let there = first.now.elephants.iter().filter(|e| e.demoted.is_none());
    let mut all: Vec<Heavy> = there
        .map(|elephant| {
            let of = |account: &Account| {
                let mut same = account.elephants.iter();
                let same = same.find(|e| e.promoted == elephant.promoted);
                same.map_or(0, |e| e.packets)
            };
            Heavy {
                flow: elephant.flow.clone(),
                packets_per_second: first.rate(of),
                packets: elephant.packets,
                promoted: elephant.promoted,
            }
        })
        .collect();
    all.sort_by_key(|e| std::cmp::Reverse(e.packets));
    all
}

/// The first worker's account has those of all.
fn guests(now: &Stats) -> Vec<Guest> {
    let stages = now.accounts.iter().flat_map(|a| &a.stages);
    let each = stages.flat_map(|stage| {
        stage.guests.iter().map(|account| Guest {
            name: stage.name.clone(),
            account: account.clone(),
        })
    });
    each.collect()
}

fn queues(steps: &[Step<'_>]) -> Vec<Queue> {
    let first = steps.first().map_or(&[][..], |s| &s.now.queues);
    let all = first.iter().enumerate().map(|(index, queue)| {
        let rate = |of: fn(&QueueAccount) -> u64| sum(steps, |a| a.queues.get(index).map_or(0, of));
        Queue {
            name: queue.name.clone(),
            missed_per_second: rate(|q| q.missed),
            unfit_per_second: rate(|q| q.unfit),
            failed_per_second: rate(|q| q.failed),
            discarded_per_second: rate(|q| q.discarded),
        }
    });
    all.collect()
}
