//! `tcp_raw_gen_syncookie_ipv6`: a sequence number by which the answer to a SYN can be told from a forgery.
//!
//! `s64 bpf_tcp_raw_gen_syncookie_ipv6(struct ipv6hdr *iph, struct tcphdr *th, u32 th_len)`. Returns the
//! cookie, and in the upper 32 bits the segment size that it stands for; `-EINVAL` unless `th_len` is the
//! header's own length. Cookies are not the kernel's, whose secret nobody knows; ours depends on the
//! run's seed (fastpath/helpers/syncookie.h).

use super::{Arg, Effects, Helper, Return};

/// kernel helper 205
pub static HELPER: Helper = Helper {
    number: 205,
    name: "tcp_raw_gen_syncookie_ipv6",
    args: &[
        Arg::In(40),
        Arg::Read { nullable: false },
        Arg::Bytes { zero: true },
    ],
    returns: Return::Scalar {
        min: -4095,
        max: (1 << 48) - 1,
    },
    kinds: &[],
    effects: Effects {
        time: true,
        random: true,
        ..Effects::NONE
    },
};
