//! `xdp_metadata_rx_vlan_tag`: the kernel function for the VLAN tag that the interface has taken off.
//!
//! `int bpf_xdp_metadata_rx_vlan_tag(ctx, __be16 *vlan_proto, u16 *vlan_tci)`. Tags stay in the frame:
//! `-EOPNOTSUPP`, and nothing is written.

use super::{Arg, Effects, Helper, Return};

/// kernel function
pub static HELPER: Helper = Helper {
    number: 0x20003,
    name: "xdp_metadata_rx_vlan_tag",
    args: &[Arg::Context, Arg::InOut(2), Arg::InOut(2)],
    returns: Return::Scalar { min: -95, max: -95 },
    kinds: &[],
    effects: Effects::NONE,
};
