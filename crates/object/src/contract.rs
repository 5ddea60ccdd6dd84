//! Contracts between helpers and kinds of state object: the one place that all rooms ask.
//!
//! A kind lists the calls on it ([`crate::state::StateKind::calls`]), each with an [`Act`] and a [`Reach`]. Those of
//! `fastpath/state/NAME.h` are meant, for one worker: what sharing an object adds (fastpath/sync) is the treatment's.
//! The facts about a kind from which all else follows are what it holds, how that is addressed, whether every CPU has
//! its own, and whether it evicts; how it can be divided, merged, and what may differ then, are functions of these.

use crate::helper::Helper;

/// Effect of a call on a state object, in ascending order: each includes those before it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Act {
    /// reads, and leaves all as it was
    Look,
    /// reads, and sets an entry's age to zero or counts it as used: twice at one time is as good as once
    Touch,
    /// adds to numbers or sets bits, whatever they are: in which order such calls come does not show in what they leave
    Add,
    /// adds, changes or removes an entry, a value, a record or a timer
    Write,
}

/// Part of an object's memory that a call reads or writes at most, in ascending order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Reach {
    /// the entry of its key or number
    Entry,
    /// places that the entry shares with some others: a bucket, counters, a word of marks
    Bucket,
    /// what is one for all entries: free lists, order, how full it is, timers that run
    Whole,
}

/// Upper bound of a call's effect on a state object.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Does {
    /// the effect
    pub act: Act,
    /// its extent
    pub reach: Reach,
}

impl Does {
    /// The least upper bound of two.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self {
            act: self.act.max(other.act),
            reach: self.reach.max(other.reach),
        }
    }

    /// Whether nothing is changed.
    #[must_use]
    pub fn looks(self) -> bool {
        self.act == Act::Look
    }
}

pub(crate) const fn look(reach: Reach) -> Does {
    Does {
        act: Act::Look,
        reach,
    }
}

pub(crate) const fn touch(reach: Reach) -> Does {
    Does {
        act: Act::Touch,
        reach,
    }
}

pub(crate) const fn add(reach: Reach) -> Does {
    Does {
        act: Act::Add,
        reach,
    }
}

pub(crate) const fn write(reach: Reach) -> Does {
    Does {
        act: Act::Write,
        reach,
    }
}

/// A helper that works on a kind of object.
#[derive(Clone, Copy, Debug)]
pub struct Call {
    /// the helper
    pub helper: &'static Helper,
    /// its effect on the object
    pub does: Does,
}

pub(crate) const fn call(helper: &'static Helper, does: Does) -> Call {
    Call { helper, does }
}

/// Content of a kind of object.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Holds {
    /// a section of variables: one value, always there
    Variables,
    /// values
    Values,
    /// values that leave in an order
    Sequence {
        /// the newest first, else the oldest
        newest: bool,
    },
    /// estimated counts of keys, which it does not list
    Estimates,
    /// whether values were put in, which it does not list
    Membership,
    /// records, which the host takes
    Records,
    /// maps
    Maps,
    /// programs, to go on with
    Programs,
    /// where packets are redirected to; the host sets them, programs read them
    Targets(Destination),
    /// the routing table, which the host fills
    Routes,
    /// rules, which the host sets and which give keys their classes
    Rules,
}

/// Target of a redirect.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Destination {
    /// a network interface
    Interface,
    /// a CPU, and from there the host
    Cpu,
    /// a socket (AF_XDP)
    Socket,
}

/// Division of an object of which each worker has the part of its own packets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Division {
    /// entries are divided, and the room for them with them
    Entries,
    /// each worker has all places and uses those of its packets
    Places,
    /// numbers are divided: each worker leases others
    Numbers,
    /// each worker counts its packets in counters of its own
    Counters,
}

/// Permitted difference from the sequential program, by its name in plans and verdicts.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Relaxed {
    /// a part is full while others have room
    Capacity,
    /// each worker evicts what it used longest ago itself
    Eviction,
    /// keys share counters only with keys of the same worker
    Collision,
    /// which free number is leased
    Lease,
}

impl Relaxed {
    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Capacity => "capacity",
            Self::Eviction => "eviction",
            Self::Collision => "collision",
            Self::Lease => "lease",
        }
    }
}

/// Way to read several objects, one a worker, from outside as one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Merging {
    /// numbers in its values are added up, if packets only add to them
    Values,
    /// its counts or bits are, if packets only add to them
    Counts,
    /// there are the records of all
    Records,
}
