//! `timer_cancel`: stops a timer and takes its function away.
//!
//! `long bpf_timer_cancel(struct bpf_timer *)`. Returns 1 if it was running, 0 if not; `-EINVAL` for a timer
//! that is not ready, `-EDEADLK` in the function that the timer calls.

use super::{Arg, Effects, Helper, Return, timer_init};

/// kernel helper 172
pub static HELPER: Helper = Helper {
    number: 172,
    name: "timer_cancel",
    args: &[Arg::Timer],
    returns: Return::Scalar { min: -4095, max: 1 },
    kinds: timer_init::HELPER.kinds,
    effects: Effects {
        state: true,
        ..Effects::NONE
    },
};
