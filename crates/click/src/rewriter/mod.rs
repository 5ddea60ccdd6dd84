//! Address translation: mappings of flows, patterns of new ones, headers rewritten.
//!
//! A rewriter has one table for all its inputs; a packet of a known flow is rewritten whatever input it came by, another
//! one by the specification of its input. A mapping holds both directions. Its age: TCP 24 hours, 4 minutes once both
//! sides or a reset ended it, 5 minutes as long as one side alone spoke; UDP and others 5 minutes. An expired mapping is
//! absent from then on, not at the next reaping as in Click. A mapping is guaranteed for 5 seconds after each packet; when a
//! table is full, the one goes that is not guaranteed and would expire first (the new one itself may be it), or the new one
//! is refused.

pub mod pattern;
mod table;

pub use pattern::{Pattern, Specification};
pub use table::{Direction, Flow, New, Rewriter, Timeouts};

/// Patterns of which each new flow takes one.
pub struct Mapper {
    /// the patterns
    pub patterns: Vec<Specification>,
    /// which a flow takes
    pub order: Order,
}

/// Which pattern a new flow takes.
pub enum Order {
    /// the first that has free words, from this one on; the next flow begins behind it
    InTurn(usize),
    /// the one of its source address, and no other
    BySource(Box<dyn Fn([u8; 4]) -> usize>),
}

/// The words that name a flow in one direction.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, PartialOrd, Ord)]
pub struct Key {
    /// source address
    pub source: [u8; 4],
    /// source port, or what stands for it
    pub sport: u16,
    /// destination address
    pub destination: [u8; 4],
    /// destination port
    pub dport: u16,
    /// protocol; 0 where all have one table
    pub protocol: u8,
}

impl Key {
    /// The other direction.
    #[must_use]
    pub fn reverse(self) -> Self {
        Self {
            source: self.destination,
            sport: self.dport,
            destination: self.source,
            dport: self.sport,
            protocol: self.protocol,
        }
    }
}
