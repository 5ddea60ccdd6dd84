//! `allocator_get`: the value kept with a leased number, or null.
//!
//! `V *allocator_get(allocator, number)`. Does not refresh; a lease ends once its age reaches
//! `expire_after`.

use super::{Arg, Effects, Helper, Return};

/// helper of our own 0x10021
pub static HELPER: Helper = Helper {
    number: 0x1_0021,
    name: "allocator_get",
    args: &[Arg::Object, Arg::Scalar],
    returns: Return::ValueOrNull,
    kinds: &["allocator"],
    effects: Effects {
        state: true,
        time: true,
        ..Effects::NONE
    },
};
