//! `allocator_lease`: leases a number.
//!
//! `s64 allocator_lease(allocator, value)`: a number that was free, the value kept with it, its age 0;
//! or -1: none is free.

use super::{Arg, Effects, Helper, Return};

/// helper of our own 0x10020
pub static HELPER: Helper = Helper {
    number: 0x1_0020,
    name: "allocator_lease",
    args: &[Arg::Object, Arg::Value],
    returns: Return::Scalar {
        min: -1,
        max: i64::MAX,
    },
    kinds: &["allocator"],
    effects: Effects {
        state: true,
        time: true,
        ..Effects::NONE
    },
};
