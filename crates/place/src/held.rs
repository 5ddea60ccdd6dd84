//! How one state object is held on several workers.

use std::sync::Arc;

use millrace_object::contract::Holds;
use millrace_object::program::StateObject;
use millrace_object::state::Addressing;

use crate::strategy::Treatment;

/// A number in a value that packets add to, in the machine's byte order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Word {
    /// bytes from the value's start
    pub offset: usize,
    /// 1, 2, 4 or 8
    pub bytes: usize,
    /// so many of its lowest bits are no part of the sum: packets read them and change none, and each worker has the same there
    pub low: u32,
}

/// How a state object is held on several workers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Held {
    /// each worker has a copy, and all are alike: packets write none of them
    #[default]
    Copied,
    /// one worker runs everything that touches it, with the whole capacity
    Alone,
    /// one for all workers, under the lock
    Locked,
    /// one for all workers, whose packets are transactions
    Transacted,
    /// each worker has one of its own, whose content means nothing to others: per-CPU scratch
    Own {
        /// packets store bytes that they do not read again: a reader outside sees what one worker's stored last
        latest: bool,
    },
    /// each worker has all of it, and repeats from rows what the packets of others do to it
    Replicated,
    /// each worker has the entries of the packets that it owns; all parts together are the object
    Divided,
    /// each worker adds to numbers of its own, whose sums are the object's
    Merged {
        /// these numbers of each value
        words: Arc<[Word]>,
        /// as of `Own`, in the bytes beside the numbers
        latest: bool,
        /// packets read the sums, and what they see of other workers' parts is at most so old, ns; none: no packet reads
        /// them
        staleness: Option<u64>,
    },
}

impl Held {
    /// Merged over these numbers, and nothing else stored.
    #[must_use]
    pub fn merged(words: &[Word]) -> Self {
        Self::Merged {
            words: words.into(),
            latest: false,
            staleness: None,
        }
    }

    /// Whether it is merged by adding numbers up.
    #[must_use]
    pub fn adds(&self) -> bool {
        matches!(self, Self::Merged { words, .. } if !words.is_empty())
    }

    /// How old the parts of other workers may be that packets read, ns; none where no packet reads any.
    #[must_use]
    pub fn staleness(&self) -> Option<u64> {
        match self {
            Self::Merged { staleness, .. } => *staleness,
            _ => None,
        }
    }

    /// Treatment of an object that is held so.
    #[must_use]
    pub fn treatment(&self) -> Treatment {
        match self {
            Self::Copied | Self::Own { .. } => Treatment::Spread,
            Self::Alone => Treatment::Alone,
            Self::Locked => Treatment::Lock,
            Self::Transacted => Treatment::Transact,
            Self::Replicated => Treatment::Replicate,
            Self::Divided => Treatment::Shard,
            Self::Merged { .. } => Treatment::Merge,
        }
    }

    /// Whether all workers have one of it.
    #[must_use]
    pub fn shared(&self) -> bool {
        matches!(self, Self::Locked | Self::Transacted)
    }

    /// Whether what other workers have counts as well as what the first one has.
    #[must_use]
    pub fn parted(&self) -> bool {
        matches!(self, Self::Divided | Self::Alone | Self::Merged { .. })
    }

    /// How an object is held where every object that packets write is divided, as far as it can be.
    #[must_use]
    pub fn where_all_is_divided(object: &StateObject) -> Self {
        let kind = object.kind;
        if object.read_only || kind.host_only() || kind.holds_maps() {
            return Self::Copied;
        }
        match (kind.holds, kind.addressing) {
            _ if kind.per_cpu => Self::Own { latest: false },
            (Holds::Variables | Holds::Programs | Holds::Routes | Holds::Rules, _) => Self::Copied,
            (Holds::Records, _) | (_, Addressing::None) => Self::Own { latest: false },
            _ => Self::Divided,
        }
    }
}
