//! `ringbuf_reserve`: reserves a record in a ring buffer.
//!
//! `void *bpf_ringbuf_reserve(ringbuf, size, flags)`; the size is a constant, flags must be 0. Null if
//! there is no room. The record is zero, where the kernel's holds what lay there. It must be submitted or
//! discarded before the program ends.

use super::{Arg, Effects, Helper, Return};

/// kernel helper 131
pub static HELPER: Helper = Helper {
    number: 131,
    name: "ringbuf_reserve",
    args: &[Arg::Object, Arg::Scalar, Arg::Scalar],
    returns: Return::RecordOrNull,
    kinds: &["ringbuf"],
    effects: Effects {
        state: true,
        ..Effects::NONE
    },
};
