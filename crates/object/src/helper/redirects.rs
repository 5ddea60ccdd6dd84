//! Targets of `XDP_REDIRECT`.

use super::Arg::{Object, Scalar};
use super::{family, helper, within};
use crate::contract::Reach::Whole;
use crate::contract::look;

family! {
    /// `redirect`: names the port that `XDP_REDIRECT` forwards to.
    ///
    /// `long bpf_redirect(ifindex, flags)`; interface index n is port n - 1. Returns `XDP_REDIRECT` (4), or
    /// `XDP_ABORTED` (0) for flags, which must be 0.
    REDIRECT = helper(23, "redirect", &[Scalar, Scalar], within(0, 4)).other();

    /// `redirect_map`: names the target that `XDP_REDIRECT` sends to by a map's entry.
    ///
    /// `long bpf_redirect_map(map, key, flags)`. Returns `XDP_REDIRECT` (4) if the entry is there, else the
    /// lower two bits of the flags; `XDP_ABORTED` (0) for other flags, except for `BPF_F_BROADCAST` 8 and
    /// `BPF_F_EXCLUDE_INGRESS` 16 with device maps (include/linux/filter.h `__bpf_xdp_redirect_map`). What
    /// becomes of the packet, the header of each kind says.
    REDIRECT_MAP =
        helper(51, "redirect_map", &[Object, Scalar, Scalar], within(0, 4))
            .does(look(Whole)).other();
}
