//! `jiffies64`: the time in ticks.
//!
//! `u64 bpf_jiffies64(void)`. A tick is 4 ms (`CONFIG_HZ` 250) of the packet's time.

use super::{Effects, Helper, Return};

/// kernel helper 118
pub static HELPER: Helper = Helper {
    number: 118,
    name: "jiffies64",
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
