//! The kinds of state object, one file each.
//!
//! A kind is a contract: which declarations are sane, how much memory it takes, what happens at
//! capacity. Its code is `fastpath/state/<c>.h`. Adding one is a file here, a header there, and a
//! line in [`KINDS`].

use crate::program::StateObject;

/// How an object is addressed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Addressing {
    /// by a key of `key_bytes`
    Key,
    /// by an index below `capacity`
    Index,
    /// by a number it hands out itself
    Lease,
    /// by nothing: records go in and leave at the other end
    None,
}

/// The contract of a kind.
#[derive(Debug)]
pub struct StateKind {
    /// the name in reports and JSON, e.g. `hash`, `lru_hash`, `map`, `vector`
    pub name: &'static str,
    /// the header `fastpath/state/<c>.h`, and the prefix of its C functions
    pub c: &'static str,
    /// the kernel's `enum bpf_map_type`, for kinds that XDP programs declare
    pub bpf_type: Option<u32>,
    /// the number in a handler's declaration record, for kinds that handlers declare
    pub handler_kind: Option<u32>,
    /// how it is addressed
    pub addressing: Addressing,
    /// whether lookups hash the key, so that the hash can be computed ahead and its bucket prefetched
    pub hashed: bool,
    /// one sentence: what happens when it is full
    pub at_capacity: &'static str,
    /// refuses declarations that make no sense, saying what would
    pub validate: fn(&StateObject) -> Result<(), String>,
    /// bytes that an instance takes from the start, exactly what the C side maps
    pub bytes: fn(&StateObject) -> u64,
}

impl PartialEq for StateKind {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

/// Every kind there is.
pub const KINDS: &[&StateKind] = &[];
