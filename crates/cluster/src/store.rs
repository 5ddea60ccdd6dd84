//! The store that a cluster agrees in, as the state machine sees it: leases, one value with compare-and-swap, a leader's key.
//!
//! Keys, below the cluster's name: `table`, `leader`, `members/NODE`, `secret`. A member's key and the leader's are bound to the lease of the node that
//! wrote them and vanish with it. The revision at which a member's key was made is the node's life: it is never repeated.
//!
//! A node's right to act comes from its lease, and its key only tells others of it: other programs can remove a key, or write it without a lease. So
//! buckets are taken over once the *lease* has ended ([`View::ended`]), whatever stands in the key's place.

use std::net::SocketAddr;

use serde::{Deserialize, Serialize};

use crate::table::{Node, Table};

/// A node that has a lease.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Member {
    /// its name
    pub name: String,
    /// where other nodes reach it
    pub peer: SocketAddr,
    /// the revision at which it joined
    #[serde(default)]
    pub life: u64,
    /// the lease that its key goes with
    #[serde(skip)]
    pub lease: i64,
    /// it keeps copies of others' buckets, and others of its own
    #[serde(default)]
    pub copies: bool,
    /// why it can neither give nor take buckets any more
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stays: Option<String>,
}

/// A key where a node's or the leader's is expected, and which is none.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Foreign {
    /// below the cluster's name
    pub key: String,
    /// what is wrong with it
    pub why: String,
    /// the revision at which it was written
    pub at: u64,
}

/// What stands in the store at one revision.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct View {
    /// the table and the revision of its last change; none before the first leader has written one
    pub table: Option<(Table, u64)>,
    /// nodes that have a lease
    pub members: Vec<Member>,
    /// name and life of the leader; a leader's key that is none and has a lease counts as that of a node without a name: as long as it stands nobody
    /// leads
    pub leader: Option<(String, u64)>,
    /// keys that another program has written: no nodes
    pub foreign: Vec<Foreign>,
    /// leases of living nodes of the table that have ended. Only those are looked at that no member has
    pub ended: Vec<i64>,
}

impl View {
    /// Whether another program has written in the place of a node of this name, so that nobody knows whether that lives.
    #[must_use]
    pub fn hides(&self, name: &str) -> bool {
        let key = |of: &Foreign| of.key.strip_prefix("members/") == Some(name);
        self.foreign.iter().any(key)
    }

    /// Whether a node of the table may still act by the lease that it had when it was listed.
    #[must_use]
    pub fn holds(&self, node: &Node) -> bool {
        node.alive && node.lease != 0 && !self.ended.contains(&node.lease)
    }

    /// Whether a node of the table has to be left its buckets. Of one that was listed without its lease only its key can tell.
    #[must_use]
    pub fn lives(&self, node: &Node) -> bool {
        if node.lease != 0 {
            return self.holds(node);
        }
        self.members.iter().any(|m| m.name == node.name) || self.hides(&node.name)
    }

    /// The revision at which was written what stands in the place of a node's key, where that is no node's; 0: nothing stands there.
    #[must_use]
    pub fn stands_at(&self, name: &str) -> u64 {
        let key = |of: &&Foreign| of.key.strip_prefix("members/") == Some(name);
        self.foreign.iter().find(key).map_or(0, |of| of.at)
    }
}

/// What has to hold in the store for a commit to be done, beside the table's revision.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Guard {
    /// these nodes have their leases, in these lives
    pub present: Vec<(String, u64)>,
    /// in the places of these nodes' keys stands what was written at that revision, which is no node's; 0: nothing
    pub unclaimed: Vec<(String, u64)>,
    /// this node, in this life, is the leader
    pub leader: Option<(String, u64)>,
}

/// What a node asks of the store. Each has one [`Reply`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Request {
    /// Grants a lease and makes the member's key, if there is none of this name; one without a lease is nobody's, and makes way.
    Join {
        /// the node; its life is not read
        member: Member,
        /// seconds, see [`crate::Times`]
        ttl: u64,
    },
    /// Puts the member's key under its lease again, if it is still the one of this life: [`Reply::Committed`]; else [`Reply::Gone`].
    Renew {
        /// the node in its life and with its lease
        member: Member,
    },
    /// Prolongs the lease.
    Keep {
        /// of [`Reply::Joined`]
        lease: i64,
    },
    /// Reads everything at one revision, linearizably.
    Read,
    /// Makes the leader's key, if there is none that has a lease.
    Lead {
        /// the lease that it vanishes with
        lease: i64,
        /// of this node
        me: (String, u64),
    },
    /// Writes the table, if it is still what it was at `at` and the guard holds.
    Commit {
        /// revision of the table that this one was made of; 0: there was none
        at: u64,
        /// what else has to hold
        guard: Guard,
        /// the new table
        table: Table,
    },
    /// Ends the lease.
    Leave {
        /// of [`Reply::Joined`]
        lease: i64,
    },
}

/// An answer of the store, or that there was none.
#[derive(Clone, PartialEq, Eq, Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "a reply is made some times a second, and moved once"
)]
pub enum Reply {
    /// The node is a member.
    Joined {
        /// its lease
        lease: i64,
        /// the revision at which it joined
        life: u64,
        /// seconds that the lease lasts: the store may grant more than was asked for
        ttl: u64,
    },
    /// Another process has a lease under this name.
    Taken,
    /// The lease lasts as long again.
    Kept {
        /// seconds from a moment after the request was sent
        ttl: u64,
    },
    /// There is no such lease any more, or the key is not this node's any more.
    Gone,
    /// What was read.
    Viewed(View),
    /// Somebody leads; a read tells whether it is this node.
    Led,
    /// The table is written; the revision.
    Committed(u64),
    /// The table or the guard was another; nothing is written.
    Conflict,
    /// The store writes nothing, whatever the table is: why.
    Refused(String),
    /// Nothing is known: the request may have been done, or may be done later.
    Failed(String),
}
