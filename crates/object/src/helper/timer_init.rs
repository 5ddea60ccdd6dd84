//! `timer_init`: makes the timer in a map's value ready.
//!
//! `long bpf_timer_init(struct bpf_timer *, map, u64 flags)`. The flags are the clock: CLOCK_REALTIME,
//! CLOCK_MONOTONIC or CLOCK_BOOTTIME, which are all the packets' time here. `-EINVAL` for any other, `-EBUSY` for
//! a timer that is ready (kernel/bpf/helpers.c `bpf_timer_init`). Deleting, overwriting or evicting the
//! entry cancels its timer, which is then as new.

use super::{Arg, Effects, Helper, Return};

/// kernel helper 169
pub static HELPER: Helper = Helper {
    number: 169,
    name: "timer_init",
    args: &[Arg::Timer, Arg::Object, Arg::Scalar],
    returns: Return::Scalar { min: -4095, max: 0 },
    kinds: &["hash", "lru_hash", "array"],
    effects: Effects {
        state: true,
        ..Effects::NONE
    },
};
