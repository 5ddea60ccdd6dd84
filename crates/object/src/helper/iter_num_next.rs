//! `iter_num_next`: the next number of a walk, or null.
//!
//! `int *bpf_iter_num_next(struct bpf_iter_num *)`. The number is in the iterator itself.

use super::{Arg, Effects, Helper, Return};

/// kernel function
pub static HELPER: Helper = Helper {
    number: 0x20005,
    name: "iter_num_next",
    args: &[Arg::Iterator],
    returns: Return::Scalar {
        min: i64::MIN,
        max: i64::MAX,
    },
    kinds: &[],
    effects: Effects {
        other: true,
        ..Effects::NONE
    },
};
