//! A section of variables: `.data`, `.bss` or `.rodata`.

use super::{Addressing, Holds, PLAIN, StateKind, memory};
use crate::globals::MAX_BYTES;
use crate::program::StateObject;

/// one value, the section's bytes
pub static KIND: StateKind = StateKind {
    name: "global",
    c: "global",
    addressing: Addressing::None,
    holds: Holds::Variables,
    calls: &[],
    at_capacity: "is one value, always there",
    validate,
    bytes,
    ..PLAIN
};

fn validate(object: &StateObject) -> Result<(), String> {
    match u64::from(object.value_bytes) {
        1..=MAX_BYTES => Ok(()),
        other => Err(format!("{other} bytes; 1 to {MAX_BYTES} are possible")),
    }
}

fn bytes(object: &StateObject) -> u64 {
    memory::mapped(u64::from(object.value_bytes))
}
