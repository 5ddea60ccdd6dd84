//! `ktime_get_ns`: the time in nanoseconds.
//!
//! `u64 bpf_ktime_get_ns(void)`. The kernel counts from boot; here it is the packet's time: the
//! capture's stamp or the burst's clock.

use super::{Effects, Helper, Return};

/// kernel helper 5
pub static HELPER: Helper = Helper {
    number: 5,
    name: "ktime_get_ns",
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
