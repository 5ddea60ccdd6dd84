//! Questions to the routing table, which no program names ([`super::implied`]).

use super::Arg::{Bytes, Context, InOut, Scalar, Update};
use super::{family, helper, within};
use crate::contract::Reach::{Entry, Whole};
use crate::contract::look;

family! {
    /// `fib_lookup`: where the routing table sends a packet, and between which MAC addresses.
    ///
    /// `long bpf_fib_lookup(ctx, struct bpf_fib_lookup *params, int plen, u32 flags)`. Asks the table that the
    /// host has read (docs/routes.md). Returns 0 and fills in the interface, both MAC addresses, the metric and
    /// the MTU, or one of `BPF_FIB_LKUP_RET_*`, or
    ///
    /// - `-EINVAL`: `plen` below the 64 bytes of the structure, or unknown flags;
    /// - `-EAFNOSUPPORT`: neither `AF_INET` nor `AF_INET6`;
    /// - `-ENODEV`: no such interface.
    FIB_LOOKUP = helper(
        69,
        "fib_lookup",
        &[Context, Update, Bytes { zero: false }, Scalar],
        within(-4095, 9),
    ).does(look(Whole));

    /// `check_mtu`: whether a packet fits an interface.
    ///
    /// `long bpf_check_mtu(ctx, u32 ifindex, u32 *mtu_len, s32 len_diff, u64 flags)`. MTUs are those of the
    /// routing table's ports (docs/routes.md), 1500 where it says nothing. Returns 0 (fits) or 1 (does not) and
    /// writes the MTU to `*mtu_len`, or `-EINVAL` (flags), `-ENODEV` (no such interface).
    CHECK_MTU =
        helper(163, "check_mtu", &[Context, Scalar, InOut(4), Scalar, Scalar], within(-4095, 1))
            .does(look(Entry));
}
