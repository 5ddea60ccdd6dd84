//! `tcp_raw_check_syncookie_ipv4`: whether an ACK answers a SYN cookie.
//!
//! `long bpf_tcp_raw_check_syncookie_ipv4(struct iphdr *iph, struct tcphdr *th)`. Returns 0 if the
//! acknowledged number is a cookie that `tcp_raw_gen_syncookie_ipv4` gave this connection in this minute
//! or the one before, else `-EACCES`.

use super::{Arg, Effects, Helper, Return};

/// kernel helper 206
pub static HELPER: Helper = Helper {
    number: 206,
    name: "tcp_raw_check_syncookie_ipv4",
    args: &[Arg::In(20), Arg::In(20)],
    returns: Return::Scalar { min: -4095, max: 0 },
    kinds: &[],
    effects: Effects {
        time: true,
        random: true,
        ..Effects::NONE
    },
};
