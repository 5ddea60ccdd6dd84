//! `iter_num_destroy`: ends a walk over numbers.
//!
//! `void bpf_iter_num_destroy(struct bpf_iter_num *)`. Every walk that has begun is ended, on every way.

use super::{Arg, Effects, Helper, Return};

/// kernel function
pub static HELPER: Helper = Helper {
    number: 0x20006,
    name: "iter_num_destroy",
    args: &[Arg::Iterator],
    returns: Return::Scalar { min: 0, max: 0 },
    kinds: &[],
    effects: Effects {
        other: true,
        ..Effects::NONE
    },
};
