//! `sketch_add`: adds to the count of a key.
//!
//! `u32 sketch_add(sketch, key, amount)`: the estimate afterwards; counts stop at 2^32 - 1.

use super::{Arg, Effects, Helper, Return};

/// helper of our own 0x10031
pub static HELPER: Helper = Helper {
    number: 0x1_0031,
    name: "sketch_add",
    args: &[Arg::Object, Arg::Key, Arg::Scalar],
    returns: Return::Scalar {
        min: 0,
        max: u32::MAX as i64,
    },
    kinds: &["sketch"],
    effects: Effects {
        state: true,
        time: true,
        ..Effects::NONE
    },
};
