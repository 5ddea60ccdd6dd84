//! `trace_vprintk`: a line for debugging with any number of values.
//!
//! `long bpf_trace_vprintk(fmt, fmt_size, data, data_len)`. There is no trace pipe here, so nothing is
//! written. Returns the line's length, or the format's where it reads memory at an address; `-EINVAL` for a format that
//! the kernel does not take, and for
//! values that are no whole 64-bit words or more than 12 (kernel/trace/bpf_trace.c `bpf_trace_vprintk`).

use super::{Arg, Effects, Helper, Return};

/// kernel helper 177
pub static HELPER: Helper = Helper {
    number: 177,
    name: "trace_vprintk",
    args: &[
        Arg::Read { nullable: false },
        Arg::Bytes { zero: false },
        Arg::Read { nullable: true },
        Arg::Bytes { zero: true },
    ],
    returns: Return::Scalar {
        min: -4095,
        max: i32::MAX as i64,
    },
    kinds: &[],
    effects: Effects {
        other: true,
        ..Effects::NONE
    },
};
