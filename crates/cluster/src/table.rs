//! The table of a cluster: a node for each bucket, under a version.

use std::net::SocketAddr;

use serde::{Deserialize, Serialize};

/// A node's place in the list of a table. Places are kept: a node that is gone leaves a hole, so that a number means one node for ever.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct NodeId(pub u16);

/// A machine of a cluster.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Node {
    /// its name, which it keeps over restarts
    pub name: String,
    /// where other nodes reach it: packets (UDP) and hand-overs (TCP)
    pub peer: SocketAddr,
    /// raised each time that it joins: what a node knew before it was gone counts no more
    pub life: u64,
    /// the lease that its right to act comes from in this life: nobody takes its buckets before that has ended; 0: not known
    #[serde(default)]
    pub lease: i64,
    /// it has a lease
    pub alive: bool,
    /// it is to have no buckets
    pub drained: bool,
    /// it keeps copies of others' buckets, and others of its own
    #[serde(default)]
    pub copies: bool,
}

/// Which node has which bucket.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Table {
    /// raised by each change
    pub version: u64,
    /// by [`NodeId`]
    pub nodes: Vec<Node>,
    /// by bucket: its node; none where nobody has it, and its packets are dropped and counted
    pub owners: Vec<Option<NodeId>>,
    /// by bucket: the node that shall have it
    pub wanted: Vec<Option<NodeId>>,
    /// by bucket: the version that was stamped on the hand-over ([`crate::HandOver::version`]) by which its owner got its state; 0: the owner began
    /// without state. A receiver uses entries only if they are of this hand-over.
    #[serde(default)]
    pub given: Vec<u64>,
    /// by bucket: its standby, the node that keeps a copy of its state; none where there is none
    #[serde(default)]
    pub standbys: Vec<Option<NodeId>>,
    /// by bucket: the node, in which life, from whose copy the owner has taken its state over; none: it was handed the state, or began without
    #[serde(default)]
    pub inherited: Vec<Option<(NodeId, u64)>>,
}

/// What is wrong with a table that somebody sent.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum TableError {
    /// Its numbers of buckets are none or differ.
    #[error(
        "a table of {owners} buckets, of which {wanted} are wanted: a power of two up to 65536 is meant, both times"
    )]
    Buckets {
        /// with owners
        owners: usize,
        /// with an owner to be
        wanted: usize,
    },
    /// A bucket has a node that is not in the list.
    #[error("bucket {bucket} is of node {node}, and the table has {nodes}")]
    Unknown {
        /// the bucket
        bucket: usize,
        /// its node
        node: u16,
        /// how many nodes there are
        nodes: usize,
    },
    /// Two of its nodes have one name.
    #[error("two nodes are called '{name}'")]
    Twice {
        /// their name
        name: String,
    },
    /// No table could follow it.
    #[error("its version is {version}: no change could raise it")]
    Last {
        /// its version
        version: u64,
    },
}

/// Versions that tables of this program never reach: one a nanosecond for 292 years.
const LAST: u64 = i64::MAX as u64;

impl Table {
    /// A table without nodes.
    #[must_use]
    pub fn empty(buckets: u32) -> Self {
        let none = vec![None; buckets as usize];
        Self {
            version: 0,
            nodes: Vec::new(),
            owners: none.clone(),
            wanted: none.clone(),
            given: vec![0; buckets as usize],
            standbys: none,
            inherited: vec![None; buckets as usize],
        }
    }

    /// The node of a bucket.
    #[must_use]
    pub fn owner(&self, bucket: u32) -> Option<NodeId> {
        self.owners.get(bucket as usize).copied().flatten()
    }

    /// The node that keeps a copy of a bucket.
    #[must_use]
    pub fn standby(&self, bucket: u32) -> Option<NodeId> {
        self.standbys.get(bucket as usize).copied().flatten()
    }

    /// A node by its number.
    #[must_use]
    pub fn node(&self, id: NodeId) -> Option<&Node> {
        self.nodes.get(usize::from(id.0))
    }

    /// A node by its name.
    #[must_use]
    pub fn named(&self, name: &str) -> Option<NodeId> {
        let at = self.nodes.iter().position(|n| n.name == name)?;
        u16::try_from(at).ok().map(NodeId)
    }

    /// Whether its parts agree: a table comes from outside.
    ///
    /// # Errors
    /// What does not.
    pub fn checked(mut self) -> Result<Self, TableError> {
        let (owners, wanted) = (self.owners.len(), self.wanted.len());
        if owners != wanted || !owners.is_power_of_two() || owners > 1 << 16 {
            return Err(TableError::Buckets { owners, wanted });
        }
        if self.version >= LAST {
            let version = self.version;
            return Err(TableError::Last { version });
        }
        let mut names: Vec<&str> = self.nodes.iter().map(|n| n.name.as_str()).collect();
        names.sort_unstable();
        let mut pairs = names.iter().zip(names.iter().skip(1));
        if let Some((name, _)) = pairs.find(|(a, b)| a == b) {
            let name = (*name).to_owned();
            return Err(TableError::Twice { name });
        }
        self.given.resize(owners, 0);
        self.standbys.resize(owners, None);
        self.inherited.resize(owners, None);
        let inherited = self.inherited.iter();
        let inherited: Vec<_> = inherited.map(|from| from.map(|(node, _)| node)).collect();
        for all in [&self.owners, &self.wanted, &self.standbys, &inherited] {
            for (bucket, node) in all.iter().enumerate() {
                if let Some(node) = node
                    && self.node(*node).is_none()
                {
                    return Err(TableError::Unknown {
                        bucket,
                        node: node.0,
                        nodes: self.nodes.len(),
                    });
                }
            }
        }
        Ok(self)
    }
}
