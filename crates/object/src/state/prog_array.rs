//! The kernel's array of programs to go on with: tail calls.
//!
//! `initial` of such an object has for each element 32 bits: the number of a packet program of the
//! same file in the order of `Program::entries`, from 1, or 0 where there is none.

use super::{Addressing, Call, Holds, PLAIN, StateKind, call, elements, limits, look};
use crate::contract::Reach::Entry;
use crate::helper::{TAIL_AWAY, TAIL_CALL};
use crate::program::StateObject;

/// `BPF_MAP_TYPE_PROG_ARRAY`
pub static KIND: StateKind = StateKind {
    name: "prog_array",
    c: "prog_array",
    bpf_type: Some(3),
    addressing: Addressing::Index,
    holds: Holds::Programs,
    calls: &[CALLS],
    at_capacity: "has an element for every index; an empty one falls through",
    validate,
    bytes: elements::bytes,
    ..PLAIN
};

/// Each is about one program.
const CALLS: &[Call] = &[call(&TAIL_CALL, look(Entry)), call(&TAIL_AWAY, look(Entry))];

fn validate(object: &StateObject) -> Result<(), String> {
    limits::flags(object, &[])?;
    limits::index_key(object)?;
    limits::descriptor(object)?;
    elements::validate(object)
}
