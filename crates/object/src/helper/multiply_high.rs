//! `multiply_high`: the upper 64 bits of the unsigned product.
//!
//! `u64 multiply_high(a, b)`

use super::{Arg, Effects, Helper, Return};

/// helper of our own 0x10051
pub static HELPER: Helper = Helper {
    number: 0x1_0051,
    name: "multiply_high",
    args: &[Arg::Scalar, Arg::Scalar],
    returns: Return::Scalar {
        min: i64::MIN,
        max: i64::MAX,
    },
    kinds: &[],
    effects: Effects::NONE,
};
