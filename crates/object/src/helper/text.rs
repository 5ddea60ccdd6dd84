//! Text: read, printed, compared.

use super::Arg::{Bytes, Out, Read, Scalar, Text, Write};
use super::{family, helper, within};

family! {
    /// `trace_printk`: a line for debugging.
    ///
    /// `long bpf_trace_printk(fmt, fmt_size, ...)`. There is no trace pipe here, so nothing is written. Returns
    /// the line's length where the format has no conversions, else the format's; `-EINVAL` for formats that the kernel does
    /// not take. The values for the
    /// format, in `r3` to `r5` as far as it asks for them, are no part of the contract, as in the kernel:
    /// registers that it does not ask for need not be set.
    TRACE_PRINTK = helper(
        6,
        "trace_printk",
        &[Read { nullable: false }, Bytes { zero: false }],
        within(-4095, i32::MAX as i64),
    ).other();

    /// `strtol`: a signed number out of a text.
    ///
    /// `long bpf_strtol(const char *buf, size_t buf_len, u64 flags, long *res)`: after white space, digits of the base that
    /// the flags name: 8, 10, 16, or 0 for what the digits look like, as in C. Returns how many bytes it took,
    /// or `-EINVAL` (no digits, another base or flag), `-ERANGE`; `*res` is 0 then. At most 63
    /// bytes after the sign are looked at (kernel/bpf/helpers.c `__bpf_strtoull`).
    STRTOL = helper(
        105,
        "strtol",
        &[Read { nullable: false }, Bytes { zero: false }, Scalar, Out(8)],
        within(-4095, super::MAX_BYTES as i64),
    );

    /// `strtoul`: an unsigned number out of a text.
    ///
    /// `long bpf_strtoul(const char *buf, size_t buf_len, u64 flags, unsigned long *res)`: after white space, digits of the base that
    /// the flags name: 8, 10, 16, or 0 for what the digits look like, as in C. Returns how many bytes it took,
    /// or `-EINVAL` (no digits, a minus sign, another base or flag), `-ERANGE`; `*res` is 0 then. At most 63
    /// bytes after the sign are looked at (kernel/bpf/helpers.c `__bpf_strtoull`).
    STRTOUL = helper(
        106,
        "strtoul",
        &[Read { nullable: false }, Bytes { zero: false }, Scalar, Out(8)],
        within(-4095, super::MAX_BYTES as i64),
    );

    /// `snprintf`: writes numbers as text.
    ///
    /// `long bpf_snprintf(char *to, u32 size, const char *format, u64 *values, u32 bytes)`. Returns the length of the
    /// whole text and its zero byte, of which as much is written as fits (null takes 0 bytes); `-EINVAL` for values that are no whole
    /// 64-bit words or more than 12, and for malformed formats. Conversions that read memory at an address (`%s`, `%p`
    /// and its kin) are refused. What a buffer on the stack holds beyond the text is zero.
    SNPRINTF = helper(
        165,
        "snprintf",
        &[Write { nullable: true }, Bytes { zero: true }, Text, Read { nullable: true }, Bytes { zero: true }],
        within(-4095, i32::MAX as i64),
    );

    /// `trace_vprintk`: a line for debugging with any number of values.
    ///
    /// `long bpf_trace_vprintk(fmt, fmt_size, data, data_len)`. There is no trace pipe here, so nothing is
    /// written. Returns the line's length, or the format's where it reads memory at an address; `-EINVAL` for a format that
    /// the kernel does not take, and for
    /// values that are no whole 64-bit words or more than 12 (kernel/trace/bpf_trace.c `bpf_trace_vprintk`).
    TRACE_VPRINTK = helper(
        177,
        "trace_vprintk",
        &[Read { nullable: false }, Bytes { zero: false }, Read { nullable: true }, Bytes { zero: true }],
        within(-4095, i32::MAX as i64),
    ).other();

    /// `strncmp`: compares bytes with a constant string.
    ///
    /// `long bpf_strncmp(const char *s1, u32 s1_sz, const char *s2)`. Returns -1, 0 or 1, as the first of
    /// `s1_sz` bytes that differs is less or greater; none after a zero byte is looked at.
    STRNCMP = helper(
        182,
        "strncmp",
        &[Read { nullable: false }, Bytes { zero: false }, Text],
        within(-1, 1),
    );
}
