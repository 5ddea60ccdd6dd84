//! `redirect_map`: names the target that `XDP_REDIRECT` sends to by a map's entry.
//!
//! `long bpf_redirect_map(map, key, flags)`. Returns `XDP_REDIRECT` (4) if the entry is there, else the
//! lower two bits of the flags; `XDP_ABORTED` (0) for other flags, except for `BPF_F_BROADCAST` 8 and
//! `BPF_F_EXCLUDE_INGRESS` 16 with device maps (include/linux/filter.h `__bpf_xdp_redirect_map`). What
//! becomes of the packet, the header of each kind says.

use super::{Arg, Effects, Helper, Return};

/// kernel helper 51
pub static HELPER: Helper = Helper {
    number: 51,
    name: "redirect_map",
    args: &[Arg::Object, Arg::Scalar, Arg::Scalar],
    returns: Return::Scalar { min: 0, max: 4 },
    kinds: &["devmap", "devmap_hash", "cpumap", "xskmap"],
    effects: Effects {
        state: true,
        other: true,
        ..Effects::NONE
    },
};
