//! `xdp_store_bytes`: copies bytes into the packet.
//!
//! `long bpf_xdp_store_bytes(xdp_md, offset, buf, len)`. Returns 0; `-EFAULT` if offset or length is above
//! 65535; `-EINVAL` if the packet is too short. After an error the packet is unchanged. Pointers into
//! the packet stay valid.

use super::{Arg, Effects, Helper, Return};

/// kernel helper 190
pub static HELPER: Helper = Helper {
    number: 190,
    name: "xdp_store_bytes",
    args: &[
        Arg::Context,
        Arg::Scalar,
        Arg::Read { nullable: false },
        Arg::Bytes { zero: false },
    ],
    returns: Return::Scalar { min: -4095, max: 0 },
    kinds: &[],
    effects: Effects {
        other: true,
        ..Effects::NONE
    },
};
