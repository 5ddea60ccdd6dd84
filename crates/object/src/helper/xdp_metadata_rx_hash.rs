//! `xdp_metadata_rx_hash`: the kernel function for the RSS hash that the interface has computed.
//!
//! `int bpf_xdp_metadata_rx_hash(ctx, u32 *hash, enum xdp_rss_hash_type *rss_type)`. Packets come without
//! one: `-EOPNOTSUPP`, and nothing is written.

use super::{Arg, Effects, Helper, Return};

/// kernel function
pub static HELPER: Helper = Helper {
    number: 0x20002,
    name: "xdp_metadata_rx_hash",
    args: &[Arg::Context, Arg::InOut(4), Arg::InOut(4)],
    returns: Return::Scalar { min: -95, max: -95 },
    kinds: &[],
    effects: Effects::NONE,
};
