//! Events of a node, one line of JSON each, and the check of bucket ownership over the logs of all nodes.

use std::collections::HashMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::table::NodeId;

/// What happened.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum What {
    /// a packet of the bucket was accepted under the version
    Accept,
    /// the lease ended by the node's own clock: no packet is accepted any more
    Stop,
    /// the lease holds (again)
    Go,
    /// another table counts
    Version,
    /// a bucket is this node's from now on
    Here,
    /// a bucket is no longer this node's
    Away,
    /// a bucket's state is what this node's copy has
    Inherit,
    /// the node to come refused a bucket
    Refused,
    /// all peers said that the store is away for them, too, and promised to change nothing for a lease's time
    Vouched,
    /// this node computes the table
    Lead,
}

/// A line of a node's log.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Entry {
    /// ns of the monotonic clock
    pub t: u64,
    /// the node's name
    pub node: String,
    /// what happened
    pub event: What,
    /// to which bucket
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bucket: Option<u32>,
    /// under which version of the table
    pub version: u64,
}

/// Two acceptances that no single owner explains.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Conflict {
    /// the earlier one
    pub first: Entry,
    /// the later one, of another node
    pub then: Entry,
}

impl fmt::Display for Conflict {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (first, then) = (&self.first, &self.then);
        write!(
            to,
            "bucket {} has two owners: {} accepted a packet under version {} at {} ns, {} under version {} at {} ns",
            first.bucket.unwrap_or(0),
            first.node,
            first.version,
            first.t,
            then.node,
            then.version,
            then.t
        )
    }
}

/// Checks that a bucket's ownership is linearizable: acceptances read a register that only changes of the table write. One owner has each version of a
/// bucket, and in the order of time the version at which another node accepts is a higher one, so an order of reads and writes exists that both
/// agree with. As the table's versions are totally ordered, the check is one pass over the acceptances in the order of time, not a search
/// (compare Gibbons and Korach, Testing Shared Memories, 1997, section 4: known write order).
///
/// `slack`, ns: how far the clocks of different nodes are apart at most; acceptances nearer than that are not ordered by time.
///
/// # Errors
/// The first two acceptances that contradict each other.
pub fn single_owner(entries: &[Entry], slack: u64) -> Result<usize, Box<Conflict>> {
    let mut accepts: Vec<&Entry> = entries
        .iter()
        .filter(|e| e.event == What::Accept && e.bucket.is_some())
        .collect();
    accepts.sort_by_key(|e| e.t);
    let mut under: HashMap<(u32, u64), &Entry> = HashMap::new();
    // By bucket, each node's acceptance of the highest version so far that is at least `slack` old counts; nodes are few.
    let mut highest: HashMap<u32, Vec<&Entry>> = HashMap::new();
    for accept in &accepts {
        let bucket = accept.bucket.unwrap_or(0);
        let other = *under.entry((bucket, accept.version)).or_insert(accept);
        if other.node != accept.node {
            return Err(conflict(other, accept));
        }
        let seen = highest.entry(bucket).or_default();
        let later = seen.iter().find(|e| {
            e.node != accept.node
                && e.version > accept.version
                && e.t.saturating_add(slack) < accept.t
        });
        if let Some(later) = later {
            return Err(conflict(later, accept));
        }
        match seen.iter_mut().find(|e| e.node == accept.node) {
            Some(mine) if mine.version < accept.version => *mine = accept,
            Some(_) => {}
            None => seen.push(accept),
        }
    }
    Ok(accepts.len())
}

fn conflict(first: &Entry, then: &Entry) -> Box<Conflict> {
    Box::new(Conflict {
        first: first.clone(),
        then: then.clone(),
    })
}

/// Makes entries of one node.
#[derive(Clone, Debug)]
pub(crate) struct Author {
    pub name: String,
}

impl Author {
    pub fn entry(&self, t: u64, event: What, bucket: Option<u32>, version: u64) -> Entry {
        Entry {
            t,
            node: self.name.clone(),
            event,
            bucket,
            version,
        }
    }
}

/// Where a packet of a bucket belongs, see [`crate::Standing::judge`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// this node owns its bucket and may act
    Accept {
        /// the version to log and to stamp on what is forwarded
        version: u64,
    },
    /// another node owns it
    Forward {
        /// the owner
        to: NodeId,
        /// the version to stamp on the packet
        version: u64,
    },
    /// somebody has a newer table: hold or drop it, and read the table anew
    Stale,
    /// nobody owns the bucket
    Nobody,
    /// this node's lease has ended by its own clock
    Stopped,
}
