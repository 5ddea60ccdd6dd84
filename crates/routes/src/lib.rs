//! Routing tables: what `bpf_fib_lookup` of a running function is answered from.
//!
//! A [`Table`] is read from a file ([`Table::parse`], docs/routes.md) or from the system ([`system::read`])
//! and becomes entries of the function's state object `.routes` ([`Table::entries`]), laid out as
//! fastpath/state/routes_table.h says. Here it is decided which of several routes to one prefix counts and
//! which source address a route has; a packet then only looks up.

mod document;
mod entries;
mod prefix;
mod read;
mod source;
pub mod system;
mod table;

pub use entries::Entry;
pub use prefix::{Mac, Prefix};
pub use table::{Address, Hop, Kind, Neighbour, Port, Route, Table};

/// Most bytes of a routing table's file: the whole Internet's is less than half of it.
pub const MOST_BYTES: u64 = 1 << 28;

/// Most ports: interface indices are 1 to this.
pub const MOST_PORTS: usize = 1024;

/// Most next hops, and neighbours: what a state object may hold.
pub const MOST_ENTRIES: usize = 1 << 24;

/// Why a routing table cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// a place in the text
    #[error("line {line}: {what}")]
    At {
        /// from 1
        line: usize,
        /// what is wrong there
        what: String,
    },
    /// the whole of it
    #[error("{0}")]
    Whole(String),
}
