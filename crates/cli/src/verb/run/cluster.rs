//! A run that is a machine of a cluster.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use millrace::cluster::{Agreed, Described, Member};
use millrace_cluster::etcd::{Endpoint, Tls};
use millrace_peer::Security;

use super::Run;
use crate::failure::Failure;

/// What says which machine of which cluster this is.
#[derive(Args, Clone, Default)]
pub struct Membership {
    /// Run as one of several machines, each with a part of the buckets, as they agree in etcd: etcd://HOST:2379/NAME, etcds: for TLS (docs/cluster.md);
    /// or static:FILE, a table of nodes in a file that is the same on all (docs/peers.md)
    #[arg(long, value_name = "CLUSTER", requires = "peer", requires = "node", value_parser = agreed)]
    pub cluster: Option<Agreed>,

    /// Where other machines of the cluster reach this one: packets by UDP, buckets by TCP
    #[arg(long, value_name = "ADDRESS:PORT", requires = "cluster")]
    pub peer: Option<SocketAddr>,

    /// This machine's name in the cluster
    #[arg(long, value_name = "NAME", requires = "cluster")]
    pub node: Option<String>,

    /// Certificates of the cluster: ca.pem, and this node's cert.pem and key.pem, in a folder
    #[arg(
        long,
        value_name = "FOLDER",
        requires = "cluster",
        conflicts_with = "peer_plain"
    )]
    pub peer_tls: Option<PathBuf>,

    /// Hand buckets over without TLS: whoever sees packets between machines sees state
    #[arg(long, requires = "cluster")]
    pub peer_plain: bool,

    /// How many other machines keep a copy of each bucket's state, from which they go on where this one dies: 0 or 1, the same on all
    /// machines; for clusters in etcd (docs/cluster.md)
    #[arg(long, value_name = "N", requires = "cluster", value_parser = clap::value_parser!(u8).range(0..=1))]
    pub standby: Option<u8>,

    /// The cluster, once it was read
    #[arg(skip)]
    pub described: Option<Arc<Described>>,
}

/// Where machines agree, from a word.
pub fn agreed(text: &str) -> Result<Agreed, String> {
    match text.strip_prefix("static:") {
        Some("") => Err("static:FILE, a table of nodes in a file".to_owned()),
        Some(file) => Ok(Agreed::File(PathBuf::from(file))),
        None => text
            .parse::<Endpoint>()
            .map(|endpoint| Agreed::Etcd(endpoint, Tls::default()))
            .map_err(|e| format!("{e}; or static:FILE")),
    }
}

impl Membership {
    /// Whether other machines keep copies of this one's buckets.
    pub(super) fn is_copied(&self) -> bool {
        self.standby == Some(1)
    }
}

impl Run {
    /// The cluster that this run is of, if it is of one.
    ///
    /// # Errors
    /// What was asked for does not go together, or the table cannot be read.
    pub(super) fn clustered(&self) -> Result<Option<Arc<Described>>, Failure> {
        let flags = &self.cluster;
        let (Some(agreed), Some(peer), Some(node)) = (&flags.cluster, flags.peer, &flags.node)
        else {
            return Ok(None);
        };
        if self.nfs.len() > 1 {
            return Err(Failure::wrong("--cluster is for one function")
                .help("name one: buckets of a row have no owner yet"));
        }
        if self.state.state.is_some() {
            return Err(Failure::wrong(
                "--state with --cluster: others may have had this machine's buckets since it ended, so that what it kept of them is old",
            )
            .help("leave --state out: `millrace cluster drain` hands state over before the run ends, and --standby 1 has a copy of it elsewhere (docs/cluster.md)"));
        }
        if self.trace.is_some() || !self.steer.is_empty() {
            return Err(
                Failure::wrong("--cluster: who gets which packet is the table's")
                    .help("leave --trace and --steer out"),
            );
        }
        let security = match (&flags.peer_tls, flags.peer_plain) {
            (Some(folder), _) => Security::tls(folder).map_err(|e| {
                Failure::wrong(format!("--peer-tls: {e}"))
                    .help("docs/peers.md shows how to make certificates")
            })?,
            (None, true) => Security::Plain,
            (None, false) => {
                return Err(
                    Failure::wrong("--cluster: nothing says how machines know each other")
                        .help("give --peer-tls FOLDER, or --peer-plain in a network of their own"),
                );
            }
        };
        let copies = flags.standby == Some(1);
        if copies && matches!(agreed, Agreed::File(_)) {
            return Err(Failure::wrong(
                "--standby 1: with a table in a file nothing notices that a machine is dead",
            )
            .help("agree on the table in etcd: --cluster etcd://HOST:2379/NAME"));
        }
        let mut agreed = agreed.clone();
        if let (Agreed::Etcd(endpoint, tls), Some(folder)) = (&mut agreed, &flags.peer_tls)
            && endpoint.secure
        {
            // etcd is of the cluster, and has its authority.
            tls.authority = Some(folder.join("ca.pem"));
            tls.own = Some((folder.join("cert.pem"), folder.join("key.pem")));
        }
        let described = Described::read(Member {
            agreed,
            name: node.clone(),
            peer,
            security,
            copies,
        })?;
        Ok(Some(Arc::new(described)))
    }
}
