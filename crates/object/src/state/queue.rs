//! The kernel's queue: values leave in the order they came in.

use super::{Addressing, Holds, PLAIN, StateKind, elements, sequence};

/// `BPF_MAP_TYPE_QUEUE`
pub static KIND: StateKind = StateKind {
    name: "queue",
    c: "queue",
    bpf_type: Some(22),
    addressing: Addressing::None,
    holds: Holds::Sequence { newest: false },
    calls: &[sequence::CALLS],
    at_capacity: "a value is refused with -E2BIG; with BPF_EXIST the oldest gives way",
    validate: sequence::validate,
    bytes: elements::bytes,
    ..PLAIN
};
