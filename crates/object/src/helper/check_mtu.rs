//! `check_mtu`: whether a packet fits an interface.
//!
//! `long bpf_check_mtu(ctx, u32 ifindex, u32 *mtu_len, s32 len_diff, u64 flags)`. MTUs are those of the
//! routing table's ports (docs/routes.md), 1500 where it says nothing. Returns 0 (fits) or 1 (does not) and
//! writes the MTU to `*mtu_len`, or `-EINVAL` (flags), `-ENODEV` (no such interface).

use super::{Arg, Effects, Helper, Return};

/// kernel helper 163
pub static HELPER: Helper = Helper {
    number: 163,
    name: "check_mtu",
    args: &[
        Arg::Context,
        Arg::Scalar,
        Arg::InOut(4),
        Arg::Scalar,
        Arg::Scalar,
    ],
    returns: Return::Scalar { min: -4095, max: 1 },
    kinds: &[],
    effects: Effects {
        state: true,
        ..Effects::NONE
    },
};
