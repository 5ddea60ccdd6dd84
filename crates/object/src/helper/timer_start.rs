//! `timer_start`: has a timer call its function once, after so many nanoseconds.
//!
//! `long bpf_timer_start(struct bpf_timer *, u64 ns, u64 flags)`. With BPF_F_TIMER_ABS `ns` is a moment;
//! BPF_F_TIMER_CPU_PIN changes nothing, and any other flag is `-EINVAL`, as is a timer that is not ready or has no
//! function. One that is running starts anew. fastpath/state/timers.h says when a timer fires.

use super::{Arg, Effects, Helper, Return, timer_init};

/// kernel helper 171
pub static HELPER: Helper = Helper {
    number: 171,
    name: "timer_start",
    args: &[Arg::Timer, Arg::Scalar, Arg::Scalar],
    returns: Return::Scalar { min: -4095, max: 0 },
    kinds: timer_init::HELPER.kinds,
    effects: Effects {
        state: true,
        time: true,
        ..Effects::NONE
    },
};
