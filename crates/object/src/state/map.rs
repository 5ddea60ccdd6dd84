//! A handler's `MAP`: entries by key, absent once their age reaches `expire_after`.

use super::{Addressing, Call, Holds, StateKind, call, keyed, limits, look, touch, write};
use crate::contract::Reach::{Bucket, Whole};
use crate::helper::{MAP_DELETE, MAP_GET, MAP_PUT, MAP_REFRESH};
use crate::program::StateObject;

/// `MILLRACE_MAP`
pub static KIND: StateKind = StateKind {
    name: "map",
    c: "hash",
    bpf_type: None,
    handler_kind: Some(1),
    addressing: Addressing::Key,
    holds: Holds::Values,
    per_cpu: false,
    evicts: false,
    hashed: true,
    calls: &[CALLS],
    at_capacity: "a new key is refused (null); present ones can be overwritten",
    validate,
    bytes: keyed::bytes,
};

/// A new entry is one of a list of free ones.
const CALLS: &[Call] = &[
    call(&MAP_GET, look(Bucket)),
    call(&MAP_REFRESH, touch(Bucket)),
    call(&MAP_PUT, write(Whole)),
    call(&MAP_DELETE, write(Whole)),
];

fn validate(object: &StateObject) -> Result<(), String> {
    let rows = u64::from(object.rows);
    limits::without(&[
        (object.first, "first"),
        (object.window, "window"),
        (rows, "rows"),
    ])?;
    keyed::validate(object)
}
