//! Buckets on their way from this node to another.

use crate::table::{Node, NodeId};

/// How far a batch has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Stage {
    /// the machine gives and the peer takes, under this number
    Handing(u64),
    /// the peer has the entries
    Ready,
    /// a table of this version names the new owner; its outcome is not known yet
    Committing(u64),
}

/// A bucket and its entries.
#[derive(Clone, Debug)]
pub(crate) struct Parcel {
    pub bucket: u32,
    pub entries: Vec<u8>,
}

/// A batch for one node.
#[derive(Clone, Debug)]
pub(crate) struct Moving {
    pub to: Node,
    /// of this node when it began
    pub life: u64,
    /// the version stamped on the hand-overs
    pub version: u64,
    /// when it began: what a receiver has taken it forgets some time later
    pub since: u64,
    pub stage: Stage,
    pub parcels: Vec<Parcel>,
    pub buckets: Vec<u32>,
    /// nothing was given (a weakened variant)
    pub early: bool,
}

impl Moving {
    pub fn has(&self, bucket: u32) -> bool {
        self.buckets.contains(&bucket)
    }

    /// The same, with nothing given (a weakened variant).
    pub fn early(self) -> Self {
        let parcel = |bucket: &u32| Parcel {
            bucket: *bucket,
            entries: Vec::new(),
        };
        Self {
            stage: Stage::Ready,
            parcels: self.buckets.iter().map(parcel).collect(),
            early: true,
            ..self
        }
    }
}

/// A bucket that a peer has handed over and that is not this node's yet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Taken {
    /// stamped on the hand-over
    pub version: u64,
    /// its owner under that version; none: not known yet, as the sender's table is newer
    pub owner: Option<Option<NodeId>>,
    /// when
    pub at: u64,
}
