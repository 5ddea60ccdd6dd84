//! `timer_set_callback`: says which function a timer calls.
//!
//! `long bpf_timer_set_callback(struct bpf_timer *, int (*function)(map, const void *key, void *value))`. `-EINVAL`
//! for a timer that is not ready.

use super::{Arg, Effects, Helper, Return, timer_init};

/// kernel helper 170
pub static HELPER: Helper = Helper {
    number: 170,
    name: "timer_set_callback",
    args: &[Arg::Timer, Arg::Callback],
    returns: Return::Scalar { min: -4095, max: 0 },
    kinds: timer_init::HELPER.kinds,
    effects: Effects {
        state: true,
        ..Effects::NONE
    },
};
