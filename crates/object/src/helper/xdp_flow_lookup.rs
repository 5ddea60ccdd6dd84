//! `xdp_flow_lookup`: the kernel function that finds a connection in a flow table of netfilter.
//!
//! `struct flow_offload_tuple_rhash *bpf_xdp_flow_lookup(ctx, struct bpf_fib_lookup *tuple,
//! struct bpf_flowtable_opts *opts, u32 opts_len)`. No flow table is set up here, so it is always null, as
//! in a kernel where none is; `opts->error` is `-ENOENT`, or `-EINVAL` (a length other than 4),
//! `-EAFNOSUPPORT`.

use super::{Arg, Effects, Helper, Return};

/// kernel function
pub static HELPER: Helper = Helper {
    number: 0x20000,
    name: "xdp_flow_lookup",
    args: &[Arg::Context, Arg::In(64), Arg::InOut(4), Arg::Scalar],
    returns: Return::Scalar { min: 0, max: 0 },
    kinds: &[],
    effects: Effects::NONE,
};
