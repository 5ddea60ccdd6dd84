//! SYN cookies.

use super::Arg::{Bytes, In, Read};
use super::{STATUS, family, helper, within};

family! {
    /// `tcp_raw_gen_syncookie_ipv4`: a sequence number by which the answer to a SYN can be told from a forgery.
    ///
    /// `s64 bpf_tcp_raw_gen_syncookie_ipv4(struct iphdr *iph, struct tcphdr *th, u32 th_len)`. Returns the
    /// cookie, and in the upper 32 bits the segment size that it stands for; `-EINVAL` unless `th_len` is the
    /// header's own length. Cookies are not the kernel's, whose secret nobody knows; ours depends on the
    /// run's seed (fastpath/helpers/syncookie.h).
    TCP_RAW_GEN_SYNCOOKIE_IPV4 = helper(
        204,
        "tcp_raw_gen_syncookie_ipv4",
        &[In(20), Read { nullable: false }, Bytes { zero: true }],
        within(-4095, (1 << 48) - 1),
    ).time().random();

    /// `tcp_raw_gen_syncookie_ipv6`: a sequence number by which the answer to a SYN can be told from a forgery.
    ///
    /// `s64 bpf_tcp_raw_gen_syncookie_ipv6(struct ipv6hdr *iph, struct tcphdr *th, u32 th_len)`. Returns the
    /// cookie, and in the upper 32 bits the segment size that it stands for; `-EINVAL` unless `th_len` is the
    /// header's own length. Cookies are not the kernel's, whose secret nobody knows; ours depends on the
    /// run's seed (fastpath/helpers/syncookie.h).
    TCP_RAW_GEN_SYNCOOKIE_IPV6 = helper(
        205,
        "tcp_raw_gen_syncookie_ipv6",
        &[In(40), Read { nullable: false }, Bytes { zero: true }],
        within(-4095, (1 << 48) - 1),
    ).time().random();

    /// `tcp_raw_check_syncookie_ipv4`: whether an ACK answers a SYN cookie.
    ///
    /// `long bpf_tcp_raw_check_syncookie_ipv4(struct iphdr *iph, struct tcphdr *th)`. Returns 0 if the
    /// acknowledged number is a cookie that `tcp_raw_gen_syncookie_ipv4` gave this connection in this minute
    /// or the one before, else `-EACCES`.
    TCP_RAW_CHECK_SYNCOOKIE_IPV4 =
        helper(206, "tcp_raw_check_syncookie_ipv4", &[In(20), In(20)], STATUS).time().random();

    /// `tcp_raw_check_syncookie_ipv6`: whether an ACK answers a SYN cookie.
    ///
    /// `long bpf_tcp_raw_check_syncookie_ipv6(struct ipv6hdr *iph, struct tcphdr *th)`. Returns 0 if the
    /// acknowledged number is a cookie that `tcp_raw_gen_syncookie_ipv6` gave this connection in this minute
    /// or the one before, else `-EACCES`.
    TCP_RAW_CHECK_SYNCOOKIE_IPV6 =
        helper(207, "tcp_raw_check_syncookie_ipv6", &[In(40), In(20)], STATUS).time().random();
}
