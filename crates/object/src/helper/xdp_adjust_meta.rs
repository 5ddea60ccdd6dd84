//! `xdp_adjust_meta`: moves the start of the metadata before the packet.
//!
//! `long bpf_xdp_adjust_meta(xdp_md, delta)`. Returns 0; `-EACCES` if the metadata would be longer than
//! 252 bytes or not a multiple of 4; `-EINVAL` if it exceeds the headroom or begins behind `data`.
//! Pointers into the packet are invalid afterwards, whatever it returned.

use super::{Arg, Effects, Helper, Return};

/// kernel helper 54
pub static HELPER: Helper = Helper {
    number: 54,
    name: "xdp_adjust_meta",
    args: &[Arg::Context, Arg::Scalar],
    returns: Return::Scalar { min: -4095, max: 0 },
    kinds: &[],
    effects: Effects {
        moves_packet: true,
        ..Effects::NONE
    },
};
