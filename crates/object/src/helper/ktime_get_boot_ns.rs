//! `ktime_get_boot_ns`: the time in nanoseconds, time asleep included.
//!
//! `u64 bpf_ktime_get_boot_ns(void)`. Here the same as `ktime_get_ns`: the packet's time.

use super::{Effects, Helper, Return};

/// kernel helper 125
pub static HELPER: Helper = Helper {
    number: 125,
    name: "ktime_get_boot_ns",
    args: &[],
    returns: Return::Scalar {
        min: 0,
        max: i64::MAX,
    },
    kinds: &[],
    effects: Effects {
        time: true,
        ..Effects::NONE
    },
};
