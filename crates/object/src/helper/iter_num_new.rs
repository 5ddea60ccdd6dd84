//! `iter_num_new`: begins a walk over numbers.
//!
//! `int bpf_iter_num_new(struct bpf_iter_num *, int start, int end)`. `-EINVAL` if the start is above the end,
//! `-E2BIG` for more than 2^23 numbers; then, too, the walk has begun, and is over.

use super::{Arg, Effects, Helper, Return};

/// kernel function
pub static HELPER: Helper = Helper {
    number: 0x20004,
    name: "iter_num_new",
    args: &[Arg::Iterator, Arg::Scalar, Arg::Scalar],
    returns: Return::Scalar { min: -4095, max: 0 },
    kinds: &[],
    effects: Effects {
        other: true,
        ..Effects::NONE
    },
};
