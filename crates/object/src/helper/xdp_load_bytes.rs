//! `xdp_load_bytes`: copies bytes out of the packet.
//!
//! `long bpf_xdp_load_bytes(xdp_md, offset, buf, len)`. Returns 0; `-EFAULT` if offset or length is above
//! 65535; `-EINVAL` if the packet is too short. After an error the buffer holds zeros.

use super::{Arg, Effects, Helper, Return};

/// kernel helper 189
pub static HELPER: Helper = Helper {
    number: 189,
    name: "xdp_load_bytes",
    args: &[
        Arg::Context,
        Arg::Scalar,
        Arg::Write { nullable: false },
        Arg::Bytes { zero: false },
    ],
    returns: Return::Scalar { min: -4095, max: 0 },
    kinds: &[],
    effects: Effects::NONE,
};
