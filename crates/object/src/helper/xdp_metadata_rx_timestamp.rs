//! `xdp_metadata_rx_timestamp`: the kernel function that says when the interface received the packet.
//!
//! `int bpf_xdp_metadata_rx_timestamp(ctx, u64 *timestamp)`. Writes the packet's time, ns, and returns 0.

use super::{Arg, Effects, Helper, Return};

/// kernel function
pub static HELPER: Helper = Helper {
    number: 0x20001,
    name: "xdp_metadata_rx_timestamp",
    args: &[Arg::Context, Arg::InOut(8)],
    returns: Return::Scalar { min: 0, max: 0 },
    kinds: &[],
    effects: Effects {
        time: true,
        ..Effects::NONE
    },
};
