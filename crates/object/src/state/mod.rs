//! The kinds of state object, one file each.
//!
//! A kind is a contract: which declarations are sane, how much memory it takes, what it holds, what each
//! helper's call does to it, what happens at capacity. Its code is `fastpath/state/<c>.h`. Adding one is a
//! file here, a header there, and a line in [`KINDS`].

mod elements;
mod keyed;
pub mod limits;
mod maps;
pub(crate) mod memory;
mod prefixes;
mod sequence;
mod targets;
mod timers;

pub mod allocator;
pub mod array;
pub mod array_of_maps;
pub mod bloom_filter;
pub mod classifier;
pub mod cpumap;
pub mod devmap;
pub mod devmap_hash;
pub mod distributed;
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

use serde::{Serialize, Serializer};

use crate::contract::{
    Call, Destination, Division, Does, Holds, Merging, Relaxed, add, call, look, touch, write,
};
use crate::helper::Helper;
use crate::program::StateObject;

/// How an object is addressed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Addressing {
    /// by a key of `key_bytes`
    Key,
    /// by the longest of the prefixes that match such a key, so that several keys find one entry
    Prefix,
    /// by an index below `capacity`
    Index,
    /// by a number it hands out itself
    Lease,
    /// by nothing: records go in and leave at the other end
    None,
}

/// The contract of a kind.
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
    /// what is in it
    pub holds: Holds,
    /// whether every CPU, which a worker is, has an instance of its own by definition
    pub per_cpu: bool,
    /// whether a new entry takes the place of another one when it is full
    pub evicts: bool,
    /// whether lookups hash the key, so that the hash can be computed ahead and its bucket prefetched
    pub hashed: bool,
    /// what each call on it does, in tables that kinds share
    pub calls: &'static [&'static [Call]],
    /// one sentence: what happens when it is full
    pub at_capacity: &'static str,
    /// refuses declarations that make no sense, saying what would
    pub validate: fn(&StateObject) -> Result<(), String>,
    /// bytes that an instance takes from the start, exactly what the C side maps
    pub bytes: fn(&StateObject) -> u64,
}

/// A kind that nothing declares, without entries, calls and properties: fields that the file of a kind does not name are these.
const PLAIN: StateKind = StateKind {
    name: "",
    c: "",
    bpf_type: None,
    handler_kind: None,
    addressing: Addressing::None,
    holds: Holds::Values,
    per_cpu: false,
    evicts: false,
    hashed: false,
    calls: &[],
    at_capacity: "",
    validate: |_| Ok(()),
    bytes: |_| 0,
};

/// Its name says which it is: addresses of functions are others in each process.
impl std::fmt::Debug for StateKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("StateKind").field(&self.name).finish()
    }
}

impl StateKind {
    /// Meaning of `max_entries` 0 for a kind whose capacity loaders fill in by themselves.
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
    /// Upper bound of a helper's effect on an object of this kind; none for helpers that do not work on it.
    #[must_use]
    pub fn does(&self, helper: &Helper) -> Option<Does> {
        let mut calls = self.calls.iter().copied().flatten();
        calls.find(|c| c.helper == helper).map(|c| c.does)
    }

    /// Whether it is a section of variables.
    #[must_use]
    pub fn is_global(&self) -> bool {
        self.holds == Holds::Variables
    }

    /// Whether it takes records for the host.
    #[must_use]
    pub fn holds_records(&self) -> bool {
        self.holds == Holds::Records
    }

    /// Whether programs may only read its values: targets of redirects, which the host sets
    /// (kernel/bpf/devmap.c dev_map_init_map).
    #[must_use]
    pub fn host_only(&self) -> bool {
        matches!(self.holds, Holds::Targets(_))
    }

    /// Whether it holds rules, which the host sets all at once.
    #[must_use]
    pub fn holds_rules(&self) -> bool {
        self.holds == Holds::Rules
    }

    /// Whether its values are interfaces, to which packets are also broadcast.
    #[must_use]
    pub fn holds_interfaces(&self) -> bool {
        self.holds == Holds::Targets(Destination::Interface)
    }

    /// Whether its values are maps.
    #[must_use]
    pub fn holds_maps(&self) -> bool {
        self.holds == Holds::Maps
    }

    /// Whether its values are programs.
    #[must_use]
    pub fn holds_programs(&self) -> bool {
        self.holds == Holds::Programs
    }

    /// Whether it can be the value of a map of maps. The kernel admits one level, and no program arrays
    /// (kernel/bpf/map_in_map.c bpf_map_meta_alloc).
    #[must_use]
    pub fn nests(&self) -> bool {
        self.bpf_type.is_some() && !self.holds_maps() && !self.holds_programs()
    }

    /// Whether it says of a value only whether it holds it.
    #[must_use]
    pub fn membership(&self) -> bool {
        self.holds == Holds::Membership
    }

    /// Whether it knows the keys or values that were put in.
    #[must_use]
    pub fn lists(&self) -> bool {
        !self.estimates() && !self.membership() && !self.holds_rules()
    }

    /// Whether entries may be set from outside while packets run. Variables may not: programs are proved safe for the
    /// constants they have. Estimates have no entries, and what is kept under a leased number belongs to its lease.
    #[must_use]
    pub fn is_set_from_outside(&self) -> bool {
        !(self.is_global() || self.leases() || self.estimates())
    }

    /// Whether it counts keys by estimate.
    #[must_use]
    pub fn estimates(&self) -> bool {
        self.holds == Holds::Estimates
    }

    /// Whether it leases numbers.
    #[must_use]
    pub fn leases(&self) -> bool {
        self.addressing == Addressing::Lease
    }

    /// Whether what is looked for is itself the place where it is: a number that is leased, an index.
    #[must_use]
    pub fn key_is_place(&self) -> bool {
        matches!(self.addressing, Addressing::Lease | Addressing::Index)
    }

    /// Whether it has a value under every index below its capacity from the start, which cannot be removed.
    #[must_use]
    pub fn has_all(&self) -> bool {
        self.addressing == Addressing::Index && self.holds == Holds::Values
    }

    /// Whether it is a table of entries by key, each of which is there from when it was put there.
    #[must_use]
    pub fn is_table(&self) -> bool {
        self.addressing == Addressing::Key && self.holds == Holds::Values
    }

    /// Division among workers that each have the part of their own packets; none where no steering tells parts of it
    /// apart: it has one order for all packets, or two keys may find one entry.
    #[must_use]
    pub fn division(&self) -> Option<Division> {
        match (self.holds, self.addressing) {
            (Holds::Values, Addressing::Key) => Some(Division::Entries),
            (Holds::Values, Addressing::Index) | (Holds::Variables, _) => Some(Division::Places),
            (Holds::Values, Addressing::Lease) => Some(Division::Numbers),
            (Holds::Estimates, _) => Some(Division::Counters),
            _ => None,
        }
    }

    /// Permitted differences where it is divided.
    #[must_use]
    pub fn relaxed(&self) -> &'static [Relaxed] {
        match self.division() {
            Some(Division::Entries) if self.evicts => &[Relaxed::Eviction],
            Some(Division::Entries) => &[Relaxed::Capacity],
            Some(Division::Numbers) => &[Relaxed::Capacity, Relaxed::Lease],
            Some(Division::Counters) => &[Relaxed::Collision],
            Some(Division::Places) | None => &[],
        }
    }

    /// The difference that arises when a worker's part is full while others have room.
    #[must_use]
    pub fn when_full(&self) -> Relaxed {
        match self.evicts {
            true => Relaxed::Eviction,
            false => Relaxed::Capacity,
        }
    }

    /// The way to read several, one a worker, as one; none where that is impossible.
    #[must_use]
    pub fn merging(&self) -> Option<Merging> {
        match (self.holds, self.addressing) {
            (Holds::Values, Addressing::Lease) => None,
            (Holds::Values | Holds::Variables, _) => Some(Merging::Values),
            (Holds::Estimates | Holds::Membership, _) => Some(Merging::Counts),
            (Holds::Records, _) => Some(Merging::Records),
            _ => None,
        }
    }
}

/// By its name.
impl Serialize for StateKind {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.serialize_str(self.name)
    }
}

impl Eq for StateKind {}

impl PartialEq for StateKind {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self, other)
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
    &classifier::KIND,
    &distributed::KIND,
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

/// The kernel's name of a map type, without `BPF_MAP_TYPE_` (include/uapi/linux/bpf.h).
#[must_use]
pub fn bpf_type_name(number: u32) -> String {
    const NAMES: &str = "\
        UNSPEC HASH ARRAY PROG_ARRAY PERF_EVENT_ARRAY PERCPU_HASH PERCPU_ARRAY STACK_TRACE \
        CGROUP_ARRAY LRU_HASH LRU_PERCPU_HASH LPM_TRIE ARRAY_OF_MAPS HASH_OF_MAPS DEVMAP \
        SOCKMAP CPUMAP XSKMAP SOCKHASH CGROUP_STORAGE REUSEPORT_SOCKARRAY \
        PERCPU_CGROUP_STORAGE QUEUE STACK SK_STORAGE DEVMAP_HASH STRUCT_OPS RINGBUF \
        INODE_STORAGE TASK_STORAGE BLOOM_FILTER USER_RINGBUF CGRP_STORAGE ARENA \
    ";
    match NAMES.split_whitespace().nth(number as usize) {
        Some(name) => name.to_owned(),
        None => format!("number {number}"),
    }
}
