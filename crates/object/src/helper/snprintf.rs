//! `snprintf`: writes numbers as text.
//!
//! `long bpf_snprintf(char *to, u32 size, const char *format, u64 *values, u32 bytes)`. Returns the length of the
//! whole text and its zero byte, of which as much is written as fits (null takes 0 bytes); `-EINVAL` for values that are no whole
//! 64-bit words or more than 12, and for malformed formats. Conversions that read memory at an address (`%s`, `%p`
//! and its kin) are refused. What a buffer on the stack holds beyond the text is zero.

use super::{Arg, Effects, Helper, Return};

/// kernel helper 165
pub static HELPER: Helper = Helper {
    number: 165,
    name: "snprintf",
    args: &[
        Arg::Write { nullable: true },
        Arg::Bytes { zero: true },
        Arg::Text,
        Arg::Read { nullable: true },
        Arg::Bytes { zero: true },
    ],
    returns: Return::Scalar {
        min: -4095,
        max: i32::MAX as i64,
    },
    kinds: &[],
    effects: Effects::NONE,
};
