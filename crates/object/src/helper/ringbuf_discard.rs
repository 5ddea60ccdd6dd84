//! `ringbuf_discard`: gives a reserved record back unread.
//!
//! `void bpf_ringbuf_discard(data, flags)`; flags as `ringbuf_output`. The record is gone afterwards.
//! Nothing is returned; `r0` is 0.

use super::{Arg, Effects, Helper, Return};

/// kernel helper 133
pub static HELPER: Helper = Helper {
    number: 133,
    name: "ringbuf_discard",
    args: &[Arg::Record, Arg::Scalar],
    returns: Return::Scalar { min: 0, max: 0 },
    kinds: &[],
    effects: Effects {
        state: true,
        ..Effects::NONE
    },
};
