//! `sketch_count`: the estimate for a key.
//!
//! `u32 sketch_count(sketch, key)`: never below the true count of the window, at most 2^32 - 1.

use super::{Arg, Effects, Helper, Return};

/// helper of our own 0x10030
pub static HELPER: Helper = Helper {
    number: 0x1_0030,
    name: "sketch_count",
    args: &[Arg::Object, Arg::Key],
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
