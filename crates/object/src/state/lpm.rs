//! A handler's `LPM`: values by address prefixes, looked up by the longest that matches.

use super::{Addressing, Call, Holds, PLAIN, StateKind, call, limits, look, prefixes, write};
use crate::contract::Reach::Whole;
use crate::helper::{LPM_DELETE, LPM_GET, LPM_PUT};
use crate::program::StateObject;

/// `MILLRACE_LPM`
pub static KIND: StateKind = StateKind {
    name: "lpm",
    c: "lpm",
    handler_kind: Some(5),
    addressing: Addressing::Prefix,
    holds: Holds::Values,
    calls: &[CALLS],
    at_capacity: "a new prefix is refused (null); present ones can be overwritten",
    validate,
    bytes,
    ..PLAIN
};

/// One trie leads to all prefixes.
const CALLS: &[Call] = &[
    call(&LPM_GET, look(Whole)),
    call(&LPM_PUT, write(Whole)),
    call(&LPM_DELETE, write(Whole)),
];

fn validate(object: &StateObject) -> Result<(), String> {
    limits::options(object, &[])?;
    match object.key_bytes {
        1..=16 => {}
        other => {
            return Err(format!(
                "a key of {other} bytes; it is an address: 4 bytes (IPv4), 16 (IPv6), or fewer"
            ));
        }
    }
    prefixes::validate(object, bytes(object))
}

fn bytes(object: &StateObject) -> u64 {
    prefixes::bytes(object, object.key_bytes)
}
