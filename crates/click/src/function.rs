//! What a function of another dialect does to a packet, as data: for each input the ways that its packets may take. It comes from a model of
//! all its paths, which others make; here it is what an element means.

use std::sync::Arc;

/// Where bits are counted from.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Base {
    /// the packet's first byte
    Front,
    /// the transport header: behind the IPv4 header that begins at this byte, by the length that it names
    Upper(u16),
}

/// A number of a packet that a guard tests. Bits that a packet does not have decide nothing.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Field {
    /// bytes of the packet
    Length,
    /// bits one behind the other, the first the most significant
    Bits {
        /// where they are counted from
        base: Base,
        /// the first
        first: u32,
        /// how many, 1 to 64
        width: u32,
    },
}

impl Field {
    /// The highest value.
    #[must_use]
    pub fn most(self) -> u64 {
        match self {
            Self::Length => 65_535,
            Self::Bits { width, .. } => u64::MAX >> (64 - width.clamp(1, 64)),
        }
    }
}

/// A condition of a way. Parts are shared.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Guard {
    /// for all packets, or for none
    Constant(bool),
    /// the first two where the condition holds, else the third
    If(Arc<[Guard; 3]>),
    /// all of them
    All(Arc<[Guard]>),
    /// one of them
    Any(Arc<[Guard]>),
    /// a number lies in one of these intervals (ascending, apart, ends included)
    Within(Field, Arc<[(u64, u64)]>),
    /// so many bytes, one or more, are there from the transport header on that is behind the IPv4 header at a byte
    Room(u16, u16),
    /// at this byte is an IPv4 header that is right: version and lengths, its sum if that is asked
    Right(u16, bool),
    /// nothing says so, and no packet asks
    Unknown,
}

impl Guard {
    /// The opposite.
    #[must_use]
    pub fn opposite(self) -> Self {
        match self {
            Self::Constant(holds) => Self::Constant(!holds),
            other => Self::choice(other, Self::Constant(false), Self::Constant(true)),
        }
    }

    /// `yes` where the condition holds, else `no`.
    #[must_use]
    pub fn choice(condition: Self, yes: Self, no: Self) -> Self {
        match condition {
            Self::Constant(true) => yes,
            Self::Constant(false) => no,
            condition => Self::If(Arc::new([condition, yes, no])),
        }
    }
}

/// What is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Write {
    /// whole bytes of the link header: the first, how many (8 at most), their value
    Link(u32, u32, u64),
    /// the TTL of the IPv4 header at this byte is one less, and the header's sum follows (RFC 1624)
    Ttl(u16),
}

/// How a way ends.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum End {
    /// by an output
    Output(usize),
    /// dropped: why, where the function says so
    Drop(Option<String>),
}

/// A way that packets may take.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Way {
    /// which packets take it
    pub guard: Guard,
    /// what they become
    pub writes: Vec<Write>,
    /// where they go
    pub end: End,
}

/// A function.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Decided {
    /// the ways of each input's packets: each packet takes one
    pub inputs: Vec<Vec<Way>>,
}
