//! `trace_printk`: a line for debugging.
//!
//! `long bpf_trace_printk(fmt, fmt_size, ...)`. There is no trace pipe here, so nothing is written. Returns
//! the line's length where the format has no conversions, else the format's; `-EINVAL` for formats that the kernel does
//! not take. The values for the
//! format, in `r3` to `r5` as far as it asks for them, are no part of the contract, as in the kernel:
//! registers that it does not ask for need not be set.

use super::{Arg, Effects, Helper, Return};

/// kernel helper 6
pub static HELPER: Helper = Helper {
    number: 6,
    name: "trace_printk",
    args: &[Arg::Read { nullable: false }, Arg::Bytes { zero: false }],
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
