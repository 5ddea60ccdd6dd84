//! `loop`: calls a function so many times, or until it says that it is enough.
//!
//! `long bpf_loop(u32 n, long (*function)(u64 index, void *context), void *context, u64 flags)`. Returns how
//! often the function was called; `-EINVAL` if any flag is set; `-E2BIG` for more than [`MOST`] rounds (as a 32-bit
//! number where the kernel puts a loop in the call's place). A function that returns anything but 0 is not called again.

use super::{Arg, Effects, Helper, Return};

/// The most rounds of one call (include/linux/bpf_verifier.h, `BPF_MAX_LOOPS`).
pub const MOST: u32 = 1 << 23;

/// kernel helper 181
pub static HELPER: Helper = Helper {
    number: 181,
    name: "loop",
    args: &[Arg::Scalar, Arg::Function, Arg::Any, Arg::Scalar],
    returns: Return::Scalar {
        min: -4095,
        max: u32::MAX as i64,
    },
    kinds: &[],
    effects: Effects {
        other: true,
        ..Effects::NONE
    },
};
