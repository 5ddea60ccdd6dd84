//! `millrace top --cluster`: all machines of a cluster, and their sum.
//!
//! Which machines there are and how they stand is in etcd, or in the file that has the table; what each has counted it is asked over the port between
//! machines, all at a time and for [`PATIENCE`] at most. A machine without a lease is not asked.

use std::collections::BTreeMap;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use clap::Args;
use millrace::cluster::Agreed;
use millrace_cluster::etcd::{Endpoint, Etcd, Tls, patiently};
use millrace_cluster::{Node, Status};
use millrace_peer::{Figures, Plan, Secret, Security, Viewer};
use serde::Serialize;

use crate::failure::Failure;
use crate::verb::cluster::{TIMEOUT, failure};
use crate::verb::run::cluster::agreed;

/// How long machines may take to answer.
const PATIENCE: Duration = Duration::from_secs(1);

/// The cluster, and how its machines are asked.
#[derive(Args)]
pub struct Asked {
    /// All machines of a cluster: etcd://HOST:2379/NAME, etcds: for TLS (docs/cluster.md), or static:FILE (docs/peers.md)
    #[arg(long, value_name = "CLUSTER", value_parser = agreed, conflicts_with_all = ["run", "control"])]
    pub cluster: Option<Agreed>,

    /// A certificate of the cluster's authority, by which machines answer: ca.pem, cert.pem and key.pem, in a folder; for etcds: too
    #[arg(
        long,
        value_name = "FOLDER",
        requires = "cluster",
        conflicts_with = "peer_plain"
    )]
    peer_tls: Option<std::path::PathBuf>,

    /// Ask without TLS, machines that run with --peer-plain
    #[arg(long, requires = "cluster")]
    peer_plain: bool,
}

/// A machine, as it stands in the table.
#[derive(Clone, Debug, Serialize)]
pub struct Listed {
    /// its name
    pub name: String,
    /// where others reach it
    pub peer: String,
    /// it has a lease; where there are none, the file says that it is alive
    pub lease: bool,
    /// the table counts it among the living
    pub alive: bool,
    /// it is to have no buckets
    pub drained: bool,
    /// it computes the table
    pub leader: bool,
    /// buckets that it has by the table; none where only the machines know
    pub buckets: Option<usize>,
    /// buckets that it shall have
    pub wanted: Option<usize>,
    /// buckets of others of which it keeps a copy
    pub copies: Option<usize>,
}

/// What one look at all machines found.
#[derive(Clone, Debug)]
pub struct Seen {
    /// of the cluster, or the file
    pub name: String,
    /// of the table
    pub version: u64,
    /// how many buckets there are; none where only the machines know
    pub buckets: Option<usize>,
    /// nobody has them
    pub unowned: usize,
    /// to go to another machine
    pub moving: usize,
    /// each machine with its answer, or why there is none
    pub machines: Vec<(Listed, Result<Figures, String>)>,
    /// when
    pub at: Instant,
}

/// Where the table is.
enum Source {
    Etcd(String, Etcd),
    File(String, Plan),
}

/// Looks at a cluster.
pub struct Looker {
    source: Source,
    viewer: Viewer,
}

impl Looker {
    /// Of the cluster that was asked for.
    ///
    /// # Errors
    /// There is none, or nothing says how its machines know who asks.
    pub fn new(asked: &Asked, agreed: &Agreed) -> Result<Self, Failure> {
        let security = match (&asked.peer_tls, asked.peer_plain) {
            (Some(folder), _) => Security::tls(folder).map_err(|e| {
                Failure::wrong(format!("--peer-tls: {e}"))
                    .help("docs/cluster.md says which certificates machines answer to")
            })?,
            (None, true) => Security::Plain,
            (None, false) => {
                return Err(
                    Failure::wrong("--cluster: nothing says how machines know who asks")
                        .help("give --peer-tls FOLDER, or --peer-plain where they run with that"),
                );
            }
        };
        let (source, secret) = match agreed {
            Agreed::File(file) => {
                let plan = Plan::read(file)
                    .map_err(|e| Failure::wrong(e).help("docs/peers.md shows such a file"))?;
                let secret = plan.secret.clone();
                (Source::File(file.display().to_string(), plan), secret)
            }
            Agreed::Etcd(endpoint, tls) => {
                let etcd = reached(endpoint, tls, asked)?;
                let known = patiently(TIMEOUT, || etcd.known_secret()).map_err(|e| failure(&e))?;
                let name = endpoint.name.clone();
                let secret = known.ok_or_else(|| {
                    Failure::no(format!("there is no cluster {name} in that etcd"))
                        .help("start a node: `millrace run FUNCTION --cluster … --peer PORT`")
                })?;
                (Source::Etcd(name, etcd), Secret::new(secret))
            }
        };
        Ok(Self {
            source,
            viewer: Viewer::new(&secret, &security),
        })
    }

    /// Looks at all machines.
    ///
    /// # Errors
    /// Etcd does not answer.
    pub fn look(&self) -> Result<Seen, Failure> {
        let (name, status, nodes) = match &self.source {
            Source::Etcd(name, etcd) => {
                let view = etcd.view().map_err(|e| failure(&e))?;
                let nodes = view.table.as_ref().map(|(table, _)| table.nodes.clone());
                (name, Some(Status::of(&view)), nodes.unwrap_or_default())
            }
            Source::File(name, plan) => (name, None, plan.nodes().to_vec()),
        };
        let listed: Vec<Listed> = match &status {
            Some(status) => { status.nodes.iter() }
                .map(|n| Listed {
                    name: n.name.clone(),
                    peer: n.peer.clone(),
                    lease: n.lease,
                    alive: n.alive,
                    drained: n.drained,
                    leader: n.leader,
                    buckets: Some(n.buckets),
                    wanted: Some(n.wanted),
                    copies: Some(n.copies),
                })
                .collect(),
            None => { nodes.iter() }
                .map(|n| Listed {
                    name: n.name.clone(),
                    peer: n.peer.to_string(),
                    lease: n.alive,
                    alive: n.alive,
                    drained: false,
                    leader: false,
                    buckets: None,
                    wanted: None,
                    copies: None,
                })
                .collect(),
        };
        let mut answers = self.ask(&listed, nodes);
        let machines = listed.into_iter().map(|listed| {
            let silent = || match listed.lease {
                false => Err("it has no lease".to_owned()),
                true => Err(format!(
                    "no answer within {} ms",
                    (PATIENCE + PATIENCE / 4).as_millis()
                )),
            };
            let answer = answers.remove(&listed.name).unwrap_or_else(silent);
            (listed, answer)
        });
        let machines = machines.collect();
        let file = match &self.source {
            Source::File(_, plan) => plan.version,
            Source::Etcd(..) => 0,
        };
        Ok(Seen {
            name: name.clone(),
            version: status.as_ref().map_or(file, |s| s.version),
            buckets: status.as_ref().map(|s| s.buckets),
            unowned: status.as_ref().map_or(0, |s| s.unowned),
            moving: status.as_ref().map_or(0, |s| s.moving),
            machines,
            at: Instant::now(),
        })
    }

    /// Asks all that have a lease at a time; who has not answered by the end of the patience is not waited for.
    fn ask(
        &self,
        listed: &[Listed],
        nodes: Vec<Node>,
    ) -> BTreeMap<String, Result<Figures, String>> {
        let (sender, answers) = mpsc::channel();
        let mut asked = 0;
        for (_, node) in { listed.iter().zip(nodes) }.filter(|(listed, _)| listed.lease) {
            let (viewer, sender) = (self.viewer.clone(), sender.clone());
            let ask = move || {
                let answer = viewer.look(&node, PATIENCE).map_err(|refused| refused.why);
                // The patience may have ended.
                let _ = sender.send((node.name, answer));
            };
            let thread = std::thread::Builder::new().name("look".to_owned());
            asked += usize::from(thread.spawn(ask).is_ok());
        }
        let end = Instant::now() + PATIENCE + PATIENCE / 4;
        let mut found = BTreeMap::new();
        while found.len() < asked {
            let left = end.saturating_duration_since(Instant::now());
            let Ok((name, answer)) = answers.recv_timeout(left) else {
                break;
            };
            found.insert(name, answer);
        }
        found
    }
}

fn reached(endpoint: &Endpoint, tls: &Tls, asked: &Asked) -> Result<Etcd, Failure> {
    let mut tls = tls.clone();
    if let (Some(folder), true) = (&asked.peer_tls, endpoint.secure) {
        // As `run` does: etcd is of the cluster, and has its authority.
        tls.authority = Some(folder.join("ca.pem"));
        tls.own = Some((folder.join("cert.pem"), folder.join("key.pem")));
    }
    Etcd::new(endpoint, &tls, TIMEOUT).map_err(|e| failure(&e))
}

/// Rates of a machine or of all, a second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Rates {
    /// read
    pub packets_per_second: f64,
    /// dropped or aborted
    pub lost_per_second: f64,
    /// sent to other machines
    pub sent_per_second: f64,
    /// came from other machines
    pub received_per_second: f64,
}

impl Rates {
    fn between(before: &Figures, now: &Figures) -> Self {
        // Of another run there is nothing to compare with.
        let seconds = now.seconds - before.seconds;
        let rate = |of: fn(&Figures) -> u64| match seconds > 0.0 {
            true => of(now).saturating_sub(of(before)) as f64 / seconds,
            false => 0.0,
        };
        Self {
            packets_per_second: rate(|f| f.read),
            lost_per_second: rate(|f| f.dropped.saturating_add(f.aborted)),
            sent_per_second: rate(|f| f.peers.sent),
            received_per_second: rate(|f| f.peers.received),
        }
    }

    fn add(&mut self, other: Self) {
        self.packets_per_second += other.packets_per_second;
        self.lost_per_second += other.lost_per_second;
        self.sent_per_second += other.sent_per_second;
        self.received_per_second += other.received_per_second;
    }
}

/// A machine between two looks.
#[derive(Clone, Debug, Serialize)]
pub struct Machine {
    #[serde(flatten)]
    pub listed: Listed,
    /// why it has not answered; none: it has
    #[serde(skip_serializing_if = "Option::is_none")]
    pub silent: Option<String>,
    /// since its run began; none where it has not answered
    #[serde(skip_serializing_if = "Option::is_none")]
    pub figures: Option<Figures>,
    /// between two looks; none where it has not answered both
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rates: Option<Rates>,
}

/// All machines between two looks: the document of `--json`.
#[derive(Clone, Debug, Serialize)]
pub struct All {
    pub cluster: String,
    pub version: u64,
    pub buckets: Option<usize>,
    pub unowned: usize,
    pub moving: usize,
    /// seconds between the looks
    pub interval: f64,
    pub machines: Vec<Machine>,
    /// how many of them have answered
    pub answered: usize,
    /// of all that have answered
    pub sum: Figures,
    pub rates: Rates,
    /// in the sum each packet has one fate, and each one dropped or aborted a reason
    pub balances: bool,
}

impl All {
    /// Between two looks.
    pub fn between(before: &Seen, now: &Seen) -> Self {
        let (mut sum, mut rates) = (Figures::default(), Rates::default());
        let mut machines = Vec::new();
        for (listed, answer) in &now.machines {
            let earlier = { before.machines.iter() }.find(|(other, _)| other.name == listed.name);
            let earlier = earlier.and_then(|(_, answer)| answer.as_ref().ok());
            let both = answer.as_ref().ok().zip(earlier);
            let own = both.map(|(now, before)| Rates::between(before, now));
            if let Ok(figures) = answer {
                sum.add(figures);
                sum.seconds = sum.seconds.max(figures.seconds);
                sum.age = sum.age.max(figures.age);
            }
            rates.add(own.unwrap_or_default());
            machines.push(Machine {
                listed: listed.clone(),
                silent: answer.as_ref().err().cloned(),
                figures: answer.as_ref().ok().cloned(),
                rates: own,
            });
        }
        sum.version = now.version;
        Self {
            cluster: now.name.clone(),
            version: now.version,
            buckets: now.buckets,
            unowned: now.unowned,
            moving: now.moving,
            interval: now.at.saturating_duration_since(before.at).as_secs_f64(),
            answered: machines.iter().filter(|m| m.figures.is_some()).count(),
            balances: sum.balances(),
            machines,
            sum,
            rates,
        }
    }
}
