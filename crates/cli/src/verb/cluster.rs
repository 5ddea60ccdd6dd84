//! `millrace cluster`: nodes and buckets of a cluster, as they stand in etcd.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use clap::{Args, Subcommand};
use millrace_cluster::etcd::{Endpoint, Etcd, EtcdError, Tls, patiently};
use millrace_cluster::store::{Guard, View};
use millrace_cluster::{STAYS, Status, drain};
use serde_json::json;

use crate::failure::{DONE, Failure, NO};
use crate::screen;

/// For a request to etcd.
pub const TIMEOUT: Duration = Duration::from_secs(3);

/// How long a change of the table is tried: nodes that hand buckets over change it first, or servers of etcd elect one that leads, which takes them
/// seconds on a busy machine.
const PATIENCE: Duration = Duration::from_secs(30);

/// How often is looked whether a node has handed over all that it has.
const LOOK: Duration = Duration::from_millis(200);

/// Look at a cluster of machines, and take machines out of it.
///
/// It asks etcd, not the nodes. CLUSTER is etcd://HOST:2379/NAME, with several HOST:PORT after commas, and etcds: for TLS.
#[derive(Args)]
#[command(after_help = "\
Exit status: 0 done, 1 something is wrong with the cluster, or it refuses, 2 wrong use or an etcd that does not answer.")]
pub struct Cluster {
    #[command(subcommand)]
    what: What,

    /// Who signed etcd's certificate, PEM
    #[arg(long, value_name = "FILE", global = true)]
    ca: Option<PathBuf>,

    /// The certificate to show to etcd, PEM
    #[arg(long, value_name = "FILE", global = true, requires = "key")]
    cert: Option<PathBuf>,

    /// Its private key, PEM
    #[arg(long, value_name = "FILE", global = true, requires = "cert")]
    key: Option<PathBuf>,

    /// Print one JSON document
    #[arg(long, global = true)]
    pub json: bool,
}

/// What can be asked.
#[derive(Subcommand)]
enum What {
    /// The nodes, and how many buckets each has
    Show {
        /// Where the cluster is agreed on
        #[arg(value_name = "CLUSTER")]
        at: Endpoint,
    },
    /// Let a node hand its buckets over, with their state; then it can be stopped without loss
    Drain {
        /// Where the cluster is agreed on
        #[arg(value_name = "CLUSTER")]
        at: Endpoint,
        /// Its name
        node: String,
        /// Wait until it has no bucket any more, so many seconds at most
        #[arg(long, value_name = "SECONDS")]
        wait: Option<u64>,
    },
    /// Let a drained node have buckets again
    #[command(visible_alias = "add")]
    Undrain {
        /// Where the cluster is agreed on
        #[arg(value_name = "CLUSTER")]
        at: Endpoint,
        /// Its name
        node: String,
    },
    /// Whether all is as it should be; if not, what to do
    Check {
        /// Where the cluster is agreed on
        #[arg(value_name = "CLUSTER")]
        at: Endpoint,
    },
}

/// An error of etcd, with what to do about it.
pub fn failure(error: &EtcdError) -> Failure {
    let failure = Failure::wrong(error);
    match error {
        EtcdError::Away { .. } => failure.help("is etcd running there, and does a firewall let port 2379 through? Several servers are given as HOST:PORT,HOST:PORT"),
        EtcdError::Silent { .. } => failure.help("an etcd with TLS is etcds://, and one that asks for certificates needs --cert and --key; without a majority of its servers it answers nothing"),
        EtcdError::Content { .. } => failure.help("another program has written there: take another NAME, or remove that key with etcdctl"),
        EtcdError::Refused { .. } | EtcdError::File { .. } => failure,
    }
}

impl Cluster {
    /// Asks or changes, and gives the exit status.
    pub fn perform(&self) -> Result<u8, Failure> {
        match &self.what {
            What::Show { at } => {
                let status = Status::of(&look(&self.etcd(at)?, Instant::now())?);
                if self.json {
                    screen::document(&json!({"name": at.name, "status": status}));
                } else {
                    screen::out(&format!("cluster {}: {status}", at.name));
                }
                Ok(DONE)
            }
            What::Check { at } => self.check(at),
            What::Drain { at, node, wait } => self.set(at, node, true, *wait),
            What::Undrain { at, node } => self.set(at, node, false, None),
        }
    }

    fn etcd(&self, at: &Endpoint) -> Result<Etcd, Failure> {
        let tls = Tls {
            authority: self.ca.clone(),
            own: self.cert.clone().zip(self.key.clone()),
        };
        Etcd::new(at, &tls, TIMEOUT).map_err(|e| failure(&e))
    }

    fn check(&self, at: &Endpoint) -> Result<u8, Failure> {
        let status = Status::of(&look(&self.etcd(at)?, Instant::now())?);
        let right = status.findings.is_empty();
        if self.json {
            screen::document(&json!({"name": at.name, "right": right, "status": status}));
        } else if right {
            let (nodes, moving) = (&status.nodes, status.moving);
            let living = nodes.iter().filter(|n| n.alive).count();
            screen::out(&format!(
                "cluster {}: all right; {living} nodes alive, {moving} of {} buckets to move",
                at.name, status.buckets
            ));
        } else {
            for finding in &status.findings {
                screen::out(&format!("{}\n  help: {}", finding.what, finding.help));
            }
        }
        Ok(if right { DONE } else { NO })
    }

    fn set(
        &self,
        at: &Endpoint,
        node: &str,
        drained: bool,
        wait: Option<u64>,
    ) -> Result<u8, Failure> {
        let etcd = self.etcd(at)?;
        let end = Instant::now() + PATIENCE;
        loop {
            let view = look(&etcd, end)?;
            let Some((table, revision)) = view.table else {
                return Err(Failure::no(format!("cluster {} has no table", at.name))
                    .help("start a node: `millrace run FUNCTION --cluster … --peer PORT`"));
            };
            let Some(next) = drain(&table, node, drained).map_err(Failure::no)? else {
                break;
            };
            match etcd.commit(revision, &Guard::default(), &next) {
                Ok(true) => break,
                Ok(false) if Instant::now() < end => {}
                Ok(false) => {
                    return Err(Failure::no(
                        "the table changed each time before this change was written",
                    )
                    .help("nodes are handing buckets over: try again"));
                }
                // Whether it is done the next look tells.
                Err(error) if error.passes() && Instant::now() < end => {}
                Err(error) => return Err(failure(&error)),
            }
        }
        let left = left(&etcd, node, wait)?;
        let word = if drained { "drained" } else { "undrained" };
        if self.json {
            screen::document(&json!({"node": node, "drained": drained, "buckets": left}));
        } else if drained && left > 0 {
            screen::out(&format!("{node}: {word}, {left} buckets to hand over"));
        } else {
            screen::out(&format!("{node}: {word}, {left} buckets"));
        }
        Ok(if wait.is_some() && left > 0 { NO } else { DONE })
    }
}

/// What stands in etcd, asked for until then where no server of it leads.
fn look(etcd: &Etcd, end: Instant) -> Result<View, Failure> {
    let patience = end.saturating_duration_since(Instant::now());
    patiently(patience, || etcd.view()).map_err(|e| failure(&e))
}

/// How many buckets the node has, when it has none or the time is over.
fn left(etcd: &Etcd, node: &str, wait: Option<u64>) -> Result<usize, Failure> {
    let now = Instant::now();
    let end = now + Duration::from_secs(wait.unwrap_or(0));
    let patience = end.max(now + PATIENCE);
    loop {
        let status = match etcd.view() {
            Ok(view) => Status::of(&view),
            // Servers of etcd elect one that leads, or are started anew.
            Err(error) if Instant::now() < if error.passes() { patience } else { end } => {
                std::thread::sleep(LOOK);
                continue;
            }
            Err(error) => return Err(failure(&error)),
        };
        let node = status.nodes.iter().find(|n| n.name == node);
        let left = node.map_or(0, |n| n.buckets);
        if let Some((node, why)) = node
            .filter(|_| left > 0)
            .and_then(|n| Some((n, n.stays.as_ref()?)))
        {
            return Err(Failure::no(format!(
                "{left} buckets of {} stay where they are: {why}",
                node.name
            ))
            .help(STAYS));
        }
        if left == 0 || Instant::now() >= end {
            return Ok(left);
        }
        std::thread::sleep(LOOK);
    }
}
