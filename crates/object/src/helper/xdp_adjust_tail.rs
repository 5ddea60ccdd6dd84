//! `xdp_adjust_tail`: moves the packet's end.
//!
//! `long bpf_xdp_adjust_tail(xdp_md, delta)`: negative cuts, positive appends zeros. Returns 0, or
//! `-EINVAL` if that leaves less than an Ethernet header, exceeds the room behind the packet, or makes
//! a frame longer than 65535 bytes. Pointers into the packet are invalid afterwards, whatever it
//! returned.

use super::{Arg, Effects, Helper, Return};

/// kernel helper 65
pub static HELPER: Helper = Helper {
    number: 65,
    name: "xdp_adjust_tail",
    args: &[Arg::Context, Arg::Scalar],
    returns: Return::Scalar { min: -4095, max: 0 },
    kinds: &[],
    effects: Effects {
        moves_packet: true,
        ..Effects::NONE
    },
};
