//! The kinds of state object, one file each.
//!
//! A kind is a contract: which declarations are sane, how much memory it takes, what happens at
//! capacity. Its code is `fastpath/state/<c>.h`. Adding one is a file here, a header there, and a
//! line in [`KINDS`].

mod elements;
mod keyed;
pub mod limits;
mod maps;
mod memory;
mod prefixes;
mod sequence;
mod targets;
mod timers;

pub mod allocator;
pub mod array;
pub mod array_of_maps;
pub mod bloom_filter;
pub mod cpumap;
pub mod devmap;
pub mod devmap_hash;
pub mod global;
pub mod hash;
pub mod hash_of_maps;
pub mod lpm;
pub mod lpm_trie;
pub mod lru_hash;
pub mod lru_percpu_hash;
pub mod map;
pub mod percpu_array;
pub mod percpu_hash;
pub mod perf_event_array;
pub mod prog_array;
pub mod queue;
pub mod refused;
pub mod ringbuf;
pub mod routes;
pub mod sketch;
pub mod stack;
pub mod vector;
pub mod xskmap;

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

impl StateKind {
    /// What `max_entries` 0 means for a kind whose capacity loaders fill in by themselves.
    #[must_use]
    pub fn open_capacity(&self) -> Option<u64> {
        // libbpf gives a perf event array one entry a CPU.
        (self.bpf_type == Some(4)).then_some(limits::CPUS)
    }
}

/// `BPF_F_RDONLY_PROG`: programs read the values of the map, processes outside write them.
pub(crate) const RDONLY_PROG: u32 = 1 << 7;
/// `BPF_F_WRONLY_PROG`: programs write them, and do not read them.
pub(crate) const WRONLY_PROG: u32 = 1 << 8;

impl StateKind {
    /// Whether programs may only read its values: targets of redirects, which the host sets
    /// (kernel/bpf/devmap.c dev_map_init_map).
    #[must_use]
    pub fn host_only(&self) -> bool {
        matches!(self.bpf_type, Some(14 | 16 | 17 | 25))
    }

    /// Whether its values are maps.
    #[must_use]
    pub fn holds_maps(&self) -> bool {
        matches!(self.bpf_type, Some(12 | 13))
    }

    /// Whether it can be the value of a map of maps. The kernel admits one level, and no program arrays
    /// (kernel/bpf/map_in_map.c bpf_map_meta_alloc).
    #[must_use]
    pub fn nests(&self) -> bool {
        self.bpf_type.is_some() && !self.holds_maps() && self.bpf_type != Some(3)
    }

    /// Whether it says of a value only whether it holds it.
    #[must_use]
    pub fn membership(&self) -> bool {
        self.bpf_type == Some(30)
    }
}

impl PartialEq for StateKind {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

/// Every kind there is.
pub const KINDS: &[&StateKind] = &[
    &hash::KIND,
    &lru_hash::KIND,
    &array::KIND,
    &percpu_array::KIND,
    &percpu_hash::KIND,
    &lru_percpu_hash::KIND,
    &lpm_trie::KIND,
    &ringbuf::KIND,
    &perf_event_array::KIND,
    &devmap::KIND,
    &devmap_hash::KIND,
    &cpumap::KIND,
    &xskmap::KIND,
    &prog_array::KIND,
    &array_of_maps::KIND,
    &hash_of_maps::KIND,
    &queue::KIND,
    &stack::KIND,
    &bloom_filter::KIND,
    &map::KIND,
    &vector::KIND,
    &allocator::KIND,
    &sketch::KIND,
    &lpm::KIND,
    &routes::KIND,
    &global::KIND,
];

/// The kind that XDP programs declare by this `enum bpf_map_type`.
#[must_use]
pub fn by_bpf_type(number: u32) -> Option<&'static StateKind> {
    KINDS.iter().copied().find(|k| k.bpf_type == Some(number))
}

/// The kind that handlers declare by this `enum millrace_kind`.
#[must_use]
pub fn by_handler_kind(number: u32) -> Option<&'static StateKind> {
    KINDS
        .iter()
        .copied()
        .find(|k| k.handler_kind == Some(number))
}

/// The kind of this name.
#[must_use]
pub fn by_name(name: &str) -> Option<&'static StateKind> {
    KINDS.iter().copied().find(|k| k.name == name)
}

/// What the kernel calls a map type, without `BPF_MAP_TYPE_` (include/uapi/linux/bpf.h).
#[must_use]
pub fn bpf_type_name(number: u32) -> String {
    const NAMES: &[&str] = &[
        "UNSPEC",
        "HASH",
        "ARRAY",
        "PROG_ARRAY",
        "PERF_EVENT_ARRAY",
        "PERCPU_HASH",
        "PERCPU_ARRAY",
        "STACK_TRACE",
        "CGROUP_ARRAY",
        "LRU_HASH",
        "LRU_PERCPU_HASH",
        "LPM_TRIE",
        "ARRAY_OF_MAPS",
        "HASH_OF_MAPS",
        "DEVMAP",
        "SOCKMAP",
        "CPUMAP",
        "XSKMAP",
        "SOCKHASH",
        "CGROUP_STORAGE",
        "REUSEPORT_SOCKARRAY",
        "PERCPU_CGROUP_STORAGE",
        "QUEUE",
        "STACK",
        "SK_STORAGE",
        "DEVMAP_HASH",
        "STRUCT_OPS",
        "RINGBUF",
        "INODE_STORAGE",
        "TASK_STORAGE",
        "BLOOM_FILTER",
        "USER_RINGBUF",
        "CGRP_STORAGE",
        "ARENA",
    ];
    match NAMES.get(number as usize) {
        Some(name) => (*name).to_owned(),
        None => format!("number {number}"),
    }
}
