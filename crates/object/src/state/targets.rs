//! Targets of redirects: what the maps of interfaces, CPUs and sockets have in common
//! (fastpath/state/targets.h).

use crate::program::StateObject;

/// A value is a 32-bit number; where `program` holds, the descriptor of a program may follow it
/// (`struct bpf_devmap_val`, `struct bpf_cpumap_val`).
pub(super) fn value(object: &StateObject, program: bool) -> Result<(), String> {
    match object.value_bytes {
        4 => Ok(()),
        8 if program => Ok(()),
        other => Err(format!(
            "a value of {other} bytes; {} are possible, as in the kernel",
            if program { "4 or 8" } else { "4" }
        )),
    }
}
