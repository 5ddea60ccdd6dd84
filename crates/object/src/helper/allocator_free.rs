//! `allocator_free`: gives a number back.
//!
//! `int allocator_free(allocator, number)`: 1 if it was leased, else 0.

use super::{Arg, Effects, Helper, Return};

/// helper of our own 0x10023
pub static HELPER: Helper = Helper {
    number: 0x1_0023,
    name: "allocator_free",
    args: &[Arg::Object, Arg::Scalar],
    returns: Return::Scalar { min: 0, max: 1 },
    kinds: &["allocator"],
    effects: Effects {
        state: true,
        time: true,
        ..Effects::NONE
    },
};
