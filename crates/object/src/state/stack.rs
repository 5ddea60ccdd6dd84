//! The kernel's stack: the value that came in last leaves first.

use super::{Addressing, StateKind, elements, sequence};

/// `BPF_MAP_TYPE_STACK`
pub static KIND: StateKind = StateKind {
    name: "stack",
    c: "stack",
    bpf_type: Some(23),
    handler_kind: None,
    addressing: Addressing::None,
    hashed: false,
    at_capacity: "a value is refused with -E2BIG; with BPF_EXIST the oldest gives way",
    validate: sequence::validate,
    bytes: elements::bytes,
};
