//! Findings of a verification.

use serde::Serialize;

use crate::compare::Kind;
use crate::state::NotCompared;

/// Everything that was found. The two sides are equal if no difference is left that a named relaxation does not
/// explain.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Findings {
    /// whether the parallel side did what the sequential one did
    pub equal: bool,
    /// packets of the trace
    pub packets: u64,
    /// packets that were compared: all, but where the sequential side itself ran out of what it leases
    pub compared: u64,
    /// how many workers there were
    pub workers: u32,
    /// in what order they did their packets
    pub schedule: &'static str,
    /// packets by worker
    pub shares: Vec<u64>,
    /// packets that the workers forwarded, flooded or passed
    pub forwarded: u64,
    /// where workers share state: packets that took the lock to write
    #[serde(skip_serializing_if = "Option::is_none")]
    pub writers: Option<u64>,
    /// where packets are transactions
    #[serde(skip_serializing_if = "Option::is_none")]
    pub transactions: Option<Transactions>,
    /// where state is replicated: rows that the sequencer made, each of which all workers applied
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rows: Option<u64>,
    /// where only heavy keys are replicated: how often one was promoted...
    #[serde(skip_serializing_if = "Option::is_none")]
    pub promotions: Option<u64>,
    /// of which the owner looked for the entries ahead, a few places after each burst
    #[serde(skip_serializing_if = "Option::is_none")]
    pub foreseen: Option<u64>,
    /// ... and demoted
    #[serde(skip_serializing_if = "Option::is_none")]
    pub demotions: Option<u64>,
    /// where buckets of the indirection table change their workers
    #[serde(skip_serializing_if = "Option::is_none")]
    pub moved: Option<Moves>,
    /// entries of state that were compared at the end
    pub entries: u64,
    /// entries that each lie at the worker which the index of the indirection table leads to that their keys say
    pub found_by_index: u64,
    /// answers that were addressed to what the function had made of the flow
    pub redirected: u64,
    /// what differed as the plan says that it may, by name
    pub relaxations: Vec<Relaxed>,
    /// packets and entries that differ otherwise
    pub differing: u64,
    /// the first of those
    pub differences: Vec<Difference>,
    /// state that was not compared, and why
    pub not_compared: Vec<NotCompared>,
    /// what a reader should know of how far this goes
    pub notes: Vec<String>,
}

/// Packets as transactions, whose order is that of the versions which they read and wrote.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Transactions {
    /// packets that committed beside others
    pub committed: u64,
    /// attempts that did not
    pub aborted: u64,
    /// packets that ran alone
    pub alone: u64,
    /// decisions over the expiry of entries
    pub decisions: u64,
    /// reads and writes of words
    pub accesses: u64,
    /// pairs of packets of different workers of which one has to be first
    pub dependencies: u64,
}

/// Moves of buckets between workers, at drawn moments.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Moves {
    /// buckets that were moved
    pub moves: u64,
    /// of which the worker looked for the entries ahead, a few places after each burst
    pub foreseen: u64,
    /// entries that went with them
    pub entries: u64,
    /// moves that were undone, because the receiver had no room
    pub refused: u64,
    /// entries that found room nowhere: none
    pub lost: u64,
    /// changes of how many workers have buckets
    pub cores: u64,
    /// changes of the key of the hash
    pub keys: u64,
}

/// A relaxation that happened.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Relaxed {
    /// `capacity`, `eviction`, `collision` or `lease`
    pub name: &'static str,
    /// packets that were treated otherwise for this reason
    pub packets: u64,
    /// entries at the end that differ for this reason
    pub entries: u64,
}

/// A difference.
#[derive(Clone, Debug, Serialize)]
pub struct Difference {
    /// what differs
    pub kind: Kind,
    /// in one sentence
    pub what: String,
    /// the packet; none for what was found in the state at the end
    #[serde(skip_serializing_if = "Option::is_none")]
    pub packet: Option<Shown>,
    /// what the sequential side did with it
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sequential: Option<Did>,
    /// what the parallel side did
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parallel: Option<Did>,
    /// where the two executions part
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parts: Option<Place>,
    /// the entries that the packet asked for on either side, or the one that differs
    pub state: Vec<Around>,
}

impl Difference {
    /// One that is of no packet.
    pub(crate) fn of(kind: Kind, what: String) -> Self {
        Self {
            kind,
            what,
            packet: None,
            sequential: None,
            parallel: None,
            parts: None,
            state: Vec::new(),
        }
    }
}

/// A place in the author's source.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Place {
    /// FILE:LINE
    pub line: String,
    /// the text of that line
    pub source: String,
}

/// A packet for people.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Shown {
    /// ingress number, from 0
    pub number: u64,
    /// the port that it came in by
    pub port: String,
    /// ns since the epoch
    pub time_ns: u64,
    /// its bytes
    pub bytes: String,
    /// its headers
    pub headers: String,
}

/// Outcome of a packet on one side.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Did {
    /// the worker
    pub worker: u32,
    /// its fate
    pub fate: String,
    /// its bytes afterwards
    pub bytes: String,
    /// its headers afterwards
    pub headers: String,
}

/// An entry on both sides.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Around {
    /// the object
    pub object: String,
    /// the key
    pub key: String,
    /// the sequential side
    pub sequential: Content,
    /// the workers that have it, or had it, or asked for it
    pub parallel: Vec<AtWorker>,
}

/// An entry before and after the packet; none where there was none.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Content {
    /// before the packet
    pub before: Option<String>,
    /// after it
    pub after: Option<String>,
}

/// An entry at a worker.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct AtWorker {
    /// the worker
    pub worker: u32,
    /// its entry
    #[serde(flatten)]
    pub entry: Content,
}
