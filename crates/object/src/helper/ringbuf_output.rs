//! `ringbuf_output`: copies a record into a ring buffer.
//!
//! `long bpf_ringbuf_output(ringbuf, data, size, flags)`; flags are `BPF_RB_NO_WAKEUP` 1 and
//! `BPF_RB_FORCE_WAKEUP` 2 and change nothing here. Returns 0, `-EAGAIN` if there is no room, `-E2BIG`
//! above 2^30 - 1 bytes, `-EINVAL` for other flags.

use super::{Arg, Effects, Helper, Return};

/// kernel helper 130
pub static HELPER: Helper = Helper {
    number: 130,
    name: "ringbuf_output",
    args: &[
        Arg::Object,
        Arg::Read { nullable: false },
        Arg::Bytes { zero: true },
        Arg::Scalar,
    ],
    returns: Return::Scalar { min: -4095, max: 0 },
    kinds: &["ringbuf"],
    effects: Effects {
        state: true,
        ..Effects::NONE
    },
};
