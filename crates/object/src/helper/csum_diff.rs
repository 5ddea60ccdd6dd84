//! `csum_diff`: the difference that replacing bytes makes to a checksum.
//!
//! `s64 bpf_csum_diff(from, from_size, to, to_size, seed)`: the 32-bit ones' complement sum of `to`
//! less that of `from`, continuing `seed`. Sizes are multiples of 4, at most 512 together; otherwise
//! `-EINVAL`. Either pointer may be null when its size is 0.

use super::{Arg, Effects, Helper, Return};

/// kernel helper 28
pub static HELPER: Helper = Helper {
    number: 28,
    name: "csum_diff",
    args: &[
        Arg::Read { nullable: true },
        Arg::Bytes { zero: true },
        Arg::Read { nullable: true },
        Arg::Bytes { zero: true },
        Arg::Scalar,
    ],
    returns: Return::Scalar {
        min: -4095,
        max: u32::MAX as i64,
    },
    kinds: &[],
    effects: Effects::NONE,
};
