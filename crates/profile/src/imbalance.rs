//! How packets are shared out among workers, and why not evenly: one flow, one bucket of the indirection table, the table, or the key.

use std::collections::{BTreeMap, BTreeSet};

use millrace_dataplane::account::Account;
use millrace_wire::{Rule, Stop, walk};

use crate::document::{Flow, Imbalance, Worker};

/// Above this the busiest worker over the mean is uneven.
const UNEVEN: f64 = 1.25;
/// The most flows that are told apart; the packets of others count as those of none.
const MOST: usize = 1 << 16;

/// The packets of a trace, by flow and by bucket.
#[derive(Debug, Default)]
pub struct Spread {
    packets: u64,
    /// packets of each owner, where packets have one
    owners: BTreeMap<u32, u64>,
    flows: BTreeMap<Vec<u8>, (u64, Vec<u8>)>,
    buckets: BTreeMap<(u32, u32), u64>,
    indexes: BTreeSet<(u32, u32)>,
}

impl Spread {
    /// Adds a packet, which the indirection table of its port has under this index and gives to this worker; none where packets are
    /// not hashed.
    pub fn add(&mut self, port: u32, place: Option<(u32, u32)>, frame: &[u8]) {
        self.packets += 1;
        if let Some((index, owner)) = place {
            *self.owners.entry(owner).or_default() += 1;
            *self.buckets.entry((port, index)).or_default() += 1;
            self.indexes.insert((port, index));
        }
        let key = flow(frame);
        let room = self.flows.len() < MOST;
        if let Some(flow) = self.flows.get_mut(&key) {
            flow.0 += 1;
        } else if room {
            let head = frame.get(..frame.len().min(128)).unwrap_or(frame);
            self.flows.insert(key, (1, head.to_vec()));
        }
    }

    /// What there is to say of a run over these packets.
    #[must_use]
    pub fn imbalance(&self, account: &Account) -> Imbalance {
        let all: u64 = account.workers.iter().map(|w| w.packets).sum();
        let all = all.max(1) as f64;
        let workers: Vec<Worker> = (account.workers.iter())
            .map(|w| Worker {
                worker: w.worker,
                share: w.packets as f64 / all,
            })
            .collect();
        let most = workers.iter().map(|w| w.share).fold(0.0, f64::max);
        let factor = most * workers.len().max(1) as f64;
        let seen = self.packets.max(1) as f64;
        let flow = self.flows.values().max_by_key(|f| f.0);
        let flow = flow.map(|(packets, frame)| Flow {
            headers: said(frame),
            share: *packets as f64 / seen,
        });
        let bucket = self.buckets.iter().max_by_key(|b| *b.1);
        let bucket = bucket.map(|((port, index), n)| (*port, *index, *n as f64 / seen));
        let mut found = Imbalance {
            factor,
            workers,
            flow,
            ..Imbalance::default()
        };
        if factor < UNEVEN {
            return found;
        }
        if self.packets == 0 {
            let busiest = (found.workers.iter()).max_by(|a, b| a.share.total_cmp(&b.share));
            let entry = busiest.and_then(|w| account.entries.iter().find(|e| e.worker == w.worker));
            let (cause, remedy) = match entry {
                Some(e) if e.share > 0.5 => (
                    format!(
                        "heavy bucket: {:.0} % of the packets of worker {} have index {} of port {}",
                        e.share * 100.0, e.worker, e.entry, e.port
                    ),
                    "record the port, and profile the capture: that tells an elephant flow from several",
                ),
                Some(_) => (
                    "table: the indirection table gives the busiest worker more packets than its part"
                        .to_owned(),
                    "balance it to the traffic: run --trace CAPTURE",
                ),
                None => (
                    "who brings packets to their workers is not known".to_owned(),
                    "record the port, and profile the capture",
                ),
            };
            (found.cause, found.remedy) = (Some(cause), Some(remedy.to_owned()));
            return found;
        }
        let owned = self.owners.values().max().copied().unwrap_or(0) as f64;
        let planned = owned / seen * found.workers.len() as f64;
        if !self.owners.is_empty() && planned < UNEVEN {
            found.cause = Some(format!(
                "workers had unequal time: by their keys the busiest would have {planned:.2} of the mean"
            ));
            found.remedy = Some("a processor for each worker, and more packets".to_owned());
            return found;
        }
        let heaviest = found.flow.as_ref().map_or(0.0, |f| f.share);
        let (cause, remedy) = match (found.flow.as_ref(), bucket) {
            (Some(flow), _) if heaviest > most / 2.0 => (
                format!(
                    "elephant flow: {} is {:.0} % of all packets, which one worker has",
                    flow.headers,
                    flow.share * 100.0
                ),
                "--strategy hybrid or replicate: packets of one flow run on all workers",
            ),
            (_, Some((port, index, share))) if share > most / 2.0 => (
                format!(
                    "heavy bucket: {:.0} % of all packets have index {index} of port {port}, of several flows",
                    share * 100.0
                ),
                "another hash: keys are drawn anew with each run, unless --secret says which",
            ),
            (_, Some(_)) if self.indexes.len() < 4 * found.workers.len() => (
                format!(
                    "key: the fields that the hash takes have {} different values in this trace",
                    self.indexes.len()
                ),
                "shard by a key with more values, or another strategy (lock, transact)",
            ),
            (_, Some(_)) => (
                "table: the indirection table gives the busiest worker more packets than its part"
                    .to_owned(),
                "balance it to the traffic: run --trace CAPTURE",
            ),
            (_, None) => (
                "packets are dealt out as they come, and not hashed".to_owned(),
                "more packets in a run",
            ),
        };
        found.cause = Some(cause);
        found.remedy = Some(remedy.to_owned());
        found
    }
}

/// Addresses, protocol and ports, the same in both directions; the frame's addresses where it has no IP.
fn flow(frame: &[u8]) -> Vec<u8> {
    let layers = walk(frame, Rule::NIC);
    let part = |at: usize, bytes: usize| frame.get(at..at + bytes).unwrap_or(&[]).to_vec();
    let Some(ip) = layers.ip else {
        return part(0, 14);
    };
    let four = matches!(ip.version, millrace_wire::Version::V4);
    let (at, bytes) = if four { (12, 4) } else { (8, 16) };
    let mut ends = [part(ip.at + at, bytes), part(ip.at + at + bytes, bytes)];
    let mut protocol = 0;
    if let Some(upper) = ip.upper {
        protocol = upper.protocol;
        if matches!(protocol, 6 | 17) && layers.stop == Stop::Transport {
            let ports = [part(upper.at, 2), part(upper.at + 2, 2)];
            for (end, port) in ends.iter_mut().zip(ports) {
                end.extend(port);
            }
        }
    }
    ends.sort();
    let mut key = vec![protocol];
    key.extend(ends.concat());
    key
}

/// A flow in a few words.
fn said(frame: &[u8]) -> String {
    let layers = walk(frame, Rule::NIC);
    let Some(ip) = layers.ip else {
        return "frames without IP".into();
    };
    let address = |at: usize, bytes: usize| -> String {
        let all = frame.get(at..at + bytes).unwrap_or(&[]);
        match (<[u8; 4]>::try_from(all), <[u8; 16]>::try_from(all)) {
            (Ok(four), _) => std::net::IpAddr::from(four).to_string(),
            (_, Ok(six)) => std::net::IpAddr::from(six).to_string(),
            _ => "?".into(),
        }
    };
    let four = matches!(ip.version, millrace_wire::Version::V4);
    let (at, bytes) = if four { (12, 4) } else { (8, 16) };
    let (from, to) = (
        address(ip.at + at, bytes),
        address(ip.at + at + bytes, bytes),
    );
    let upper = ip.upper.map_or(String::new(), |u| match u.protocol {
        6 => "tcp ".into(),
        17 => "udp ".into(),
        n => format!("protocol {n} "),
    });
    format!("{upper}{from} > {to}")
}
