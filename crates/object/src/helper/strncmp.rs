//! `strncmp`: compares bytes with a constant string.
//!
//! `long bpf_strncmp(const char *s1, u32 s1_sz, const char *s2)`. Returns -1, 0 or 1, as the first of
//! `s1_sz` bytes that differs is less or greater; none after a zero byte is looked at.

use super::{Arg, Effects, Helper, Return};

/// kernel helper 182
pub static HELPER: Helper = Helper {
    number: 182,
    name: "strncmp",
    args: &[
        Arg::Read { nullable: false },
        Arg::Bytes { zero: false },
        Arg::Text,
    ],
    returns: Return::Scalar { min: -1, max: 1 },
    kinds: &[],
    effects: Effects::NONE,
};
