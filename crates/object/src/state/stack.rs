//! The kernel's stack: the value that came in last leaves first.

use super::{Holds, StateKind, queue};

/// `BPF_MAP_TYPE_STACK`
pub static KIND: StateKind = StateKind {
    name: "stack",
    c: "stack",
    bpf_type: Some(23),
    holds: Holds::Sequence { newest: true },
    ..queue::KIND
};
