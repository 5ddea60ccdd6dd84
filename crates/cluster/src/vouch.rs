//! Going on where the store is away for all nodes.
//!
//! A node whose store does not answer cannot tell whether the store is away as a whole (nobody can change the table, so going on is right) or only for
//! this node (others will take its buckets over, so it has to stop). It asks every other living node of its table. A peer vouches only if
//!
//! - the store has not answered the peer for three beats either,
//! - it knows no newer table,
//! - no commit of its own is under way or has an unknown outcome,
//! - its own lease is no shorter than the asking node's,
//!
//! and promises not to change the table for a lease's time from then. The node asks only where no commit of its own is under way or has an unknown
//! outcome, and promises the same for as long as it is vouched for: what it admits could take over from it. Where all vouch, the node goes on until
//! `sent + ttl - margin`, and asks again. One refusal or one silent peer leaves it at the end of its lease.
//!
//! Why this is safe: let n have table version v. Only a living node of the current table computes the next one (below), so the change from v to v + 1
//! is made by a living node of v. All of these have promised to make none, and know of none that was made. Operators' changes (`drain`) move no
//! bucket. A node that restarts forgets its promise; it has another life, and as a leader takes over nothing within a lease's time of its start.
//!
//! Who may lead: a living node of the table, by name and address; anyone, where the table has no living node; and anyone, `alone` after no living node
//! of the table had a lease any more. The last case bounds what vouching may bridge: a node goes on for at most `alone - margin` after its last
//! answer of the store, and its lease was seen to be gone at least a lease's time after that answer.
//!
//! The price: where the store is away and a node fails as well, the others stop at the end of their leases, as its silence could be a partition.

use serde::{Deserialize, Serialize};

use crate::table::Node;

/// Asks a peer to vouch.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Ask {
    /// who asks
    pub from: String,
    /// its life
    pub life: u64,
    /// its table's version
    pub version: u64,
    /// how long a promise is asked for, ns: its lease
    pub ttl: u64,
}

/// A peer's answer.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Answer {
    /// the peer's life
    pub life: u64,
    /// its table's version
    pub version: u64,
    /// why it does not vouch
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<String>,
}

/// A question to all peers.
#[derive(Clone, Debug)]
pub(crate) struct Round {
    pub id: u64,
    pub sent: u64,
    version: u64,
    /// name and life of peers that have not vouched
    open: Vec<(String, u64)>,
}

impl Round {
    pub fn new(id: u64, sent: u64, version: u64, peers: &[Node]) -> Self {
        Self {
            id,
            sent,
            version,
            open: peers.iter().map(|n| (n.name.clone(), n.life)).collect(),
        }
    }

    /// A round that nobody can answer: the next one is due a beat later.
    pub fn waiting(id: u64, sent: u64) -> Self {
        Self {
            id,
            sent,
            version: 0,
            open: vec![(String::new(), u64::MAX)],
        }
    }

    pub fn answer(&mut self, by: &str, answer: &Answer) {
        if answer.refused.is_none() && answer.version <= self.version {
            self.open
                .retain(|(name, life)| name != by || *life != answer.life);
        }
    }

    pub fn done(&self) -> bool {
        self.open.is_empty()
    }
}
