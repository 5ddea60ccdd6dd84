//! `allocator_refresh`: the value kept with a leased number, its age now 0, or null.
//!
//! `V *allocator_refresh(allocator, number)`

use super::{Arg, Effects, Helper, Return};

/// helper of our own 0x10022
pub static HELPER: Helper = Helper {
    number: 0x1_0022,
    name: "allocator_refresh",
    args: &[Arg::Object, Arg::Scalar],
    returns: Return::ValueOrNull,
    kinds: &["allocator"],
    effects: Effects {
        state: true,
        time: true,
        ..Effects::NONE
    },
};
