//! `fib_lookup`: where the routing table sends a packet, and between which MAC addresses.
//!
//! `long bpf_fib_lookup(ctx, struct bpf_fib_lookup *params, int plen, u32 flags)`. Asks the table that the
//! host has read (docs/routes.md). Returns 0 and fills in the interface, both MAC addresses, the metric and
//! the MTU, or one of `BPF_FIB_LKUP_RET_*`, or
//!
//! - `-EINVAL`: `plen` below the 64 bytes of the structure, or unknown flags;
//! - `-EAFNOSUPPORT`: neither `AF_INET` nor `AF_INET6`;
//! - `-ENODEV`: no such interface.

use super::{Arg, Effects, Helper, Return};

/// kernel helper 69
pub static HELPER: Helper = Helper {
    number: 69,
    name: "fib_lookup",
    args: &[
        Arg::Context,
        Arg::Update,
        Arg::Bytes { zero: false },
        Arg::Scalar,
    ],
    returns: Return::Scalar { min: -4095, max: 9 },
    kinds: &[],
    effects: Effects {
        state: true,
        ..Effects::NONE
    },
};
