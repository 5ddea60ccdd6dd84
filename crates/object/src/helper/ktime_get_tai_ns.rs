//! `ktime_get_tai_ns`: the time in nanoseconds of International Atomic Time.
//!
//! `u64 bpf_ktime_get_tai_ns(void)`. Here the packet's time, as on a system that nobody has told the offset
//! from UTC (the kernel's is 0 then).

use super::{Effects, Helper, Return};

/// kernel helper 208
pub static HELPER: Helper = Helper {
    number: 208,
    name: "ktime_get_tai_ns",
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
