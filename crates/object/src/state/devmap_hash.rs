//! The kernel's map of interfaces by key, for redirects: interface index n is port n - 1.

use super::{Addressing, Call, Destination, Holds, StateKind, call, keyed, limits, look, targets};
use crate::contract::Reach::{Bucket, Whole};
use crate::helper::{MAP_LOOKUP_ELEM, REDIRECT_MAP};
use crate::program::StateObject;

/// `BPF_MAP_TYPE_DEVMAP_HASH`
pub static KIND: StateKind = StateKind {
    name: "devmap_hash",
    c: "devmap_hash",
    bpf_type: Some(25),
    handler_kind: None,
    addressing: Addressing::Key,
    holds: Holds::Targets(Destination::Interface),
    per_cpu: false,
    evicts: false,
    hashed: true,
    calls: &[CALLS],
    at_capacity: "the host cannot set another interface",
    validate,
    bytes: keyed::bytes,
};

/// A broadcast asks for all.
const CALLS: &[Call] = &[
    call(&MAP_LOOKUP_ELEM, look(Bucket)),
    call(&REDIRECT_MAP, look(Whole)),
];

fn validate(object: &StateObject) -> Result<(), String> {
    limits::flags(
        object,
        &[
            (1 << 2, "BPF_F_NUMA_NODE"),
            (1 << 3, "BPF_F_RDONLY"),
            (1 << 4, "BPF_F_WRONLY"),
        ],
    )?;
    limits::index_key(object)?;
    targets::value(object, true)?;
    keyed::validate(object)
}
