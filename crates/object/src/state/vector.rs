//! A handler's `VECTOR`: elements by an index below the capacity, all there from the start, all zero.

use super::{Addressing, Holds, PLAIN, StateKind, call, elements, limits, look};
use crate::contract::Reach::Entry;
use crate::helper::VECTOR_AT;
use crate::program::StateObject;

/// `MILLRACE_VECTOR`
pub static KIND: StateKind = StateKind {
    name: "vector",
    c: "vector",
    handler_kind: Some(2),
    addressing: Addressing::Index,
    holds: Holds::Values,
    calls: &[&[call(&VECTOR_AT, look(Entry))]],
    at_capacity: "is always full: an index beyond the last is absent (null)",
    validate,
    bytes: elements::bytes,
    ..PLAIN
};

fn validate(object: &StateObject) -> Result<(), String> {
    limits::options(object, &[])?;
    elements::validate(object)
}
