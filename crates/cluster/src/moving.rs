//! Buckets on their way from this node to another.

use crate::table::Node;

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
    pub stage: Stage,
    pub parcels: Vec<Parcel>,
    pub buckets: Vec<u32>,
    /// nothing was given (a weakened variant)
    pub early: bool,
}

impl Moving {
    pub fn new(id: u64, to: Node, life: u64, buckets: &[u32]) -> Self {
        Self {
            to,
            life,
            stage: Stage::Handing(id),
            parcels: Vec::new(),
            buckets: buckets.to_vec(),
            early: false,
        }
    }

    pub fn early(to: Node, life: u64, buckets: &[u32]) -> Self {
        let parcel = |bucket: &u32| Parcel {
            bucket: *bucket,
            entries: Vec::new(),
        };
        Self {
            to,
            life,
            stage: Stage::Ready,
            parcels: buckets.iter().map(parcel).collect(),
            buckets: buckets.to_vec(),
            early: true,
        }
    }

    pub fn has(&self, bucket: u32) -> bool {
        self.buckets.contains(&bucket)
    }
}
