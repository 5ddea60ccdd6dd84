//! Timers in the values of maps.

use super::Arg::{Callback, KeyOut, Object, Scalar, Timer};
use super::{EXPANSION, Return, STATUS, family, helper, within};
use crate::contract::Reach::{Entry, Whole};
use crate::contract::write;

family! {
    /// `timer_init`: makes the timer in a map's value ready.
    ///
    /// `long bpf_timer_init(struct bpf_timer *, map, u64 flags)`. The flags are the clock: CLOCK_REALTIME,
    /// CLOCK_MONOTONIC or CLOCK_BOOTTIME, which are all the packets' time here. `-EINVAL` for any other, `-EBUSY` for
    /// a timer that is ready (kernel/bpf/helpers.c `bpf_timer_init`). Deleting, overwriting or evicting the
    /// entry cancels its timer, which is then as new.
    TIMER_INIT = helper(169, "timer_init", &[Timer, Object, Scalar], STATUS).does(write(Entry));

    /// `timer_set_callback`: says which function a timer calls.
    ///
    /// `long bpf_timer_set_callback(struct bpf_timer *, int (*function)(map, const void *key, void *value))`. `-EINVAL`
    /// for a timer that is not ready.
    TIMER_SET_CALLBACK =
        helper(170, "timer_set_callback", &[Timer, Callback], STATUS).does(write(Entry));

    /// `timer_start`: has a timer call its function once, after so many nanoseconds.
    ///
    /// `long bpf_timer_start(struct bpf_timer *, u64 ns, u64 flags)`. With BPF_F_TIMER_ABS `ns` is a moment;
    /// BPF_F_TIMER_CPU_PIN changes nothing, and any other flag is `-EINVAL`, as is a timer that is not ready or has no
    /// function. One that is running starts anew. fastpath/state/timers.h says when a timer fires.
    TIMER_START =
        helper(171, "timer_start", &[Timer, Scalar, Scalar], STATUS).does(write(Whole)).time();

    /// `timer_cancel`: stops a timer and takes its function away.
    ///
    /// `long bpf_timer_cancel(struct bpf_timer *)`. Returns 1 if it was running, 0 if not; `-EINVAL` for a timer
    /// that is not ready, `-EDEADLK` in the function that the timer calls.
    TIMER_CANCEL = helper(172, "timer_cancel", &[Timer], within(-4095, 1)).does(write(Whole));

    /// `timer_fired`: the entry whose timer fires, or null if that entry has gone.
    ///
    /// The caller of a timer's function asks for this: the key is copied, so that deleting the entry leaves
    /// it readable.
    TIMER_FIRED =
        helper(EXPANSION + 2, "timer_fired", &[Object, KeyOut], Return::ValueOrNull)
            .does(write(Whole));
}
