//! `trace_printk`: a line for debugging.
//!
//! `long bpf_trace_printk(fmt, fmt_size, ...)`. Returns the bytes written, or `-EINVAL` for a format
//! that is not admitted. The values for the format are in `r3` to `r5` as far as it asks for them;
//! the contract, like the kernel's, does not cover them, so they are not printed.

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
