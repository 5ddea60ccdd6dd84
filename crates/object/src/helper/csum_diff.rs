//! `csum_diff`: the difference that replacing bytes makes to a checksum.
//!
//! `s64 bpf_csum_diff(from, from_size, to, to_size, seed)`: the Internet checksum (RFC 1071) of `to` less
//! that of `from`, continuing `seed`, folded to 16 bits and not complemented, as Linux 6.18 gives it.
//! Older kernels leave 32 bits that fold to the same, and return `-EINVAL` for sizes that are not
//! multiples of 4; here bytes that lack to a whole word count as zeros. Either pointer may be null when
//! its size is 0.

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
        min: 0,
        max: 0xffff,
    },
    kinds: &[],
    effects: Effects::NONE,
};
