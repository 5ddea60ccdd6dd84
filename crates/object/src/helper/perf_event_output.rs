//! `perf_event_output`: copies a record, and bytes of the packet behind it, to the host.
//!
//! `long bpf_perf_event_output(ctx, map, flags, data, size)`; the flags' low 32 bits are the CPU, or
//! 0xffffffff for this one, the 20 above them how many bytes of the packet. Returns 0 or
//!
//! - `-EINVAL`: other flags;
//! - `-EFAULT`: the packet is shorter;
//! - `-E2BIG`: the map has no such entry;
//! - `-EOPNOTSUPP`: another CPU's entry;
//! - `-ENOSPC`: the host has not yet taken enough of the earlier records.

use super::{Arg, Effects, Helper, Return};

/// kernel helper 25
pub static HELPER: Helper = Helper {
    number: 25,
    name: "perf_event_output",
    args: &[
        Arg::Context,
        Arg::Object,
        Arg::Scalar,
        Arg::Read { nullable: false },
        Arg::Bytes { zero: true },
    ],
    returns: Return::Scalar { min: -4095, max: 0 },
    kinds: &["perf_event_array"],
    effects: Effects {
        state: true,
        ..Effects::NONE
    },
};
