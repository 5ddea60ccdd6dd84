//! `ktime_get_coarse_ns`: the time in nanoseconds, cheaply.
//!
//! `u64 bpf_ktime_get_coarse_ns(void)`. Here the same as `ktime_get_ns`: the packet's time.

use super::{Effects, Helper, Return};

/// kernel helper 160
pub static HELPER: Helper = Helper {
    number: 160,
    name: "ktime_get_coarse_ns",
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
