//! `xdp_get_buff_len`: the packet's length in bytes.
//!
//! `u64 bpf_xdp_get_buff_len(xdp_md)`. Packets are in one piece and at most 65535 bytes long.

use super::{Arg, Effects, Helper, Return};

/// kernel helper 188
pub static HELPER: Helper = Helper {
    number: 188,
    name: "xdp_get_buff_len",
    args: &[Arg::Context],
    returns: Return::Scalar {
        min: 0,
        max: 0xffff,
    },
    kinds: &[],
    effects: Effects::NONE,
};
