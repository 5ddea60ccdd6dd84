//! `strtoul`: an unsigned number out of a text.
//!
//! `long bpf_strtoul(const char *buf, size_t buf_len, u64 flags, unsigned long *res)`: after white space, digits of the base that
//! the flags name: 8, 10, 16, or 0 for what the digits look like, as in C. Returns how many bytes it took,
//! or `-EINVAL` (no digits, a minus sign, another base or flag), `-ERANGE`; `*res` is 0 then. At most 63
//! bytes after the sign are looked at (kernel/bpf/helpers.c `__bpf_strtoull`).

use super::{Arg, Effects, Helper, Return};

/// kernel helper 106
pub static HELPER: Helper = Helper {
    number: 106,
    name: "strtoul",
    args: &[
        Arg::Read { nullable: false },
        Arg::Bytes { zero: false },
        Arg::Scalar,
        Arg::Out(8),
    ],
    returns: Return::Scalar {
        min: -4095,
        max: super::MAX_BYTES as i64,
    },
    kinds: &[],
    effects: Effects::NONE,
};
