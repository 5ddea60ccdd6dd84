//! `redirect`: names the port that `XDP_REDIRECT` forwards to.
//!
//! `long bpf_redirect(ifindex, flags)`; interface index n is port n - 1. Returns `XDP_REDIRECT` (4), or
//! `XDP_ABORTED` (0) for flags, which must be 0.

use super::{Arg, Effects, Helper, Return};

/// kernel helper 23
pub static HELPER: Helper = Helper {
    number: 23,
    name: "redirect",
    args: &[Arg::Scalar, Arg::Scalar],
    returns: Return::Scalar { min: 0, max: 4 },
    kinds: &[],
    effects: Effects {
        other: true,
        ..Effects::NONE
    },
};
