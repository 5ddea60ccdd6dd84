//! The kernel's longest-prefix trie: the key is a `__u32` prefix length and the address after it.

use super::{
    Addressing, Call, Holds, PLAIN, StateKind, call, keyed, limits, look, prefixes, write,
};
use crate::contract::Reach::Whole;
use crate::helper::{MAP_DELETE_ELEM, MAP_LOOKUP_ELEM, MAP_UPDATE_ELEM};
use crate::program::StateObject;

/// `BPF_MAP_TYPE_LPM_TRIE`
pub static KIND: StateKind = StateKind {
    name: "lpm_trie",
    c: "lpm",
    bpf_type: Some(11),
    addressing: Addressing::Prefix,
    holds: Holds::Values,
    calls: &[CALLS],
    at_capacity: "a new prefix is refused with -ENOSPC; present ones can be overwritten",
    validate,
    bytes,
    ..PLAIN
};

/// One trie leads to all prefixes.
const CALLS: &[Call] = &[
    call(&MAP_LOOKUP_ELEM, look(Whole)),
    call(&MAP_UPDATE_ELEM, write(Whole)),
    call(&MAP_DELETE_ELEM, write(Whole)),
];

const NO_PREALLOC: u32 = 1;

fn validate(object: &StateObject) -> Result<(), String> {
    limits::flags(object, keyed::FLAGS)?;
    if object.flags & NO_PREALLOC == 0 {
        return Err("it needs `__uint(map_flags, BPF_F_NO_PREALLOC)`, as in the kernel".to_owned());
    }
    match object.key_bytes {
        5..=260 => {}
        other => {
            return Err(format!(
                "a key of {other} bytes; 4 for the prefix length and 1 to 256 of an address are possible"
            ));
        }
    }
    prefixes::validate(object, bytes(object))
}

fn bytes(object: &StateObject) -> u64 {
    prefixes::bytes(object, object.key_bytes.saturating_sub(4))
}
