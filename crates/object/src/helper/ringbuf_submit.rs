//! `ringbuf_submit`: hands a reserved record to the host.
//!
//! `void bpf_ringbuf_submit(data, flags)`; flags as `ringbuf_output`. The record is gone afterwards.
//! Nothing is returned; `r0` is 0.

use super::{Arg, Effects, Helper, Return};

/// kernel helper 132
pub static HELPER: Helper = Helper {
    number: 132,
    name: "ringbuf_submit",
    args: &[Arg::Record, Arg::Scalar],
    returns: Return::Scalar { min: 0, max: 0 },
    kinds: &[],
    effects: Effects {
        state: true,
        ..Effects::NONE
    },
};
