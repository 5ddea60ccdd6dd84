//! A handler's `MAP`: entries by key, absent once their age reaches `expire_after`.

use super::{Addressing, StateKind, keyed, limits};
use crate::program::StateObject;

/// `MILLRACE_MAP`
pub static KIND: StateKind = StateKind {
    name: "map",
    c: "hash",
    bpf_type: None,
    handler_kind: Some(1),
    addressing: Addressing::Key,
    hashed: true,
    at_capacity: "a new key is refused (null); present ones can be overwritten",
    validate,
    bytes: keyed::bytes,
};

fn validate(object: &StateObject) -> Result<(), String> {
    let rows = u64::from(object.rows);
    limits::without(&[
        (object.first, "first"),
        (object.window, "window"),
        (rows, "rows"),
    ])?;
    keyed::validate(object)
}
