//! `xdp_adjust_head`: moves the packet's first byte.
//!
//! `long bpf_xdp_adjust_head(xdp_md, delta)`: negative makes room, positive cuts. Returns 0, or `-EINVAL`
//! if that leaves less than an Ethernet header, exceeds the headroom, or makes a frame longer than 65535
//! bytes. Pointers into the packet are invalid afterwards, whatever it returned.

use super::{Arg, Effects, Helper, Return};

/// kernel helper 44
pub static HELPER: Helper = Helper {
    number: 44,
    name: "xdp_adjust_head",
    args: &[Arg::Context, Arg::Scalar],
    returns: Return::Scalar { min: -4095, max: 0 },
    kinds: &[],
    effects: Effects {
        moves_packet: true,
        ..Effects::NONE
    },
};
