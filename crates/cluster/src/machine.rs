//! What a node does about its buckets and to its peers, by whoever has packets and sockets.

use crate::table::Node;
use crate::vouch::{Answer, Ask};

/// Where a bucket is from now on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Place {
    /// on this machine
    Here,
    /// elsewhere: its packets go where the table says
    Away,
}

/// A bucket's state on its way to another node.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HandOver {
    /// the bucket
    pub bucket: u32,
    /// the table under which the sender owns it
    pub version: u64,
    /// what function, plan and buckets this is of: the receiver's has to be equal
    pub fingerprint: [u8; 32],
    /// entries, in the form of [`Machine::give`]
    pub entries: Vec<u8>,
}

/// Why something was not done; everything is as before.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{why}")]
pub struct Refused {
    /// for a person
    pub why: String,
}

/// The function that runs here. Calls block until they are done, a few milliseconds as a rule.
pub trait Machine: Send + Sync {
    /// How many buckets there are, a power of two.
    fn buckets(&self) -> u32;

    /// What function, plan and buckets run here.
    fn fingerprint(&self) -> [u8; 32];

    /// These buckets are given soon, so that their entries may be looked for all at once. Does not block; without it each is looked for by itself.
    fn foresee(&self, _buckets: &[u32]) {}

    /// Why buckets can neither go nor come any more, however often that is tried; none: they can.
    fn stays(&self) -> Option<String> {
        None
    }

    /// Holds the packets of a bucket and takes its entries out.
    ///
    /// # Errors
    /// It cannot; the bucket goes on here.
    fn give(&self, bucket: u32) -> Result<Vec<u8>, Refused>;

    /// Puts the entries of a bucket in, all or none. Its packets are not accepted before [`Self::settle`].
    ///
    /// # Errors
    /// No room, or not what [`Self::give`] wrote.
    fn take(&self, bucket: u32, entries: &[u8]) -> Result<(), Refused>;

    /// The same of a hand-over, where it is of the function that runs.
    ///
    /// # Errors
    /// As of [`Self::take`], and for those of another one.
    fn accept(&self, what: &HandOver) -> Result<(), Refused> {
        if what.fingerprint != self.fingerprint() {
            return Err(Refused { why: OTHER.into() });
        }
        self.take(what.bucket, &what.entries)
    }

    /// Bytes of entries that there is room for, in the part of one worker.
    fn room(&self) -> u64 {
        u64::MAX
    }

    /// Puts in what the copy of a bucket has that node `from` had in its life `life`, all that there is room for. The copy of that node ends with
    /// it. Packets of the bucket are not accepted before [`Self::settle`]. Where this is left out, a bucket of a dead node begins without state.
    fn inherit(&self, _bucket: u32, _from: &str, _life: u64) {}

    /// Where a bucket is; packets of it that are held go there. After [`Self::give`] with [`Place::Here`] its entries, `back`, are put back.
    fn settle(&self, bucket: u32, place: Place, back: Option<&[u8]>);
}

/// Why a hand-over of another function is refused.
pub const OTHER: &str = "another function, plan or number of buckets runs here";

/// Other nodes. Calls block until the peer has answered, or a bounded time has passed.
pub trait Peers: Send + Sync {
    /// Sends a bucket's state, and returns when the receiver has put it in.
    ///
    /// # Errors
    /// The receiver refused, or was not there; it has put in nothing or will forget it, as its table does not change.
    fn hand(&self, to: &Node, what: &HandOver) -> Result<(), Refused>;

    /// Asks a peer to vouch, see [`crate::vouch`]; none where it has not answered within a part of a lease. Where this is left out, a node whose
    /// store is away stops at the end of its lease.
    fn vouch(&self, _to: &Node, _ask: &Ask) -> Option<Answer> {
        None
    }
}
