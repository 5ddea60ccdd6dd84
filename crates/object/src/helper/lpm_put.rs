//! `lpm_put`: adds or overwrites a prefix.
//!
//! `V *lpm_put(lpm, key, prefix_bits, value)`: the stored value, or null: full, or more bits than the key
//! has.

use super::{Arg, Effects, Helper, Return};

/// helper of our own 0x10041
pub static HELPER: Helper = Helper {
    number: 0x1_0041,
    name: "lpm_put",
    args: &[Arg::Object, Arg::Key, Arg::Scalar, Arg::Value],
    returns: Return::ValueOrNull,
    kinds: &["lpm"],
    effects: Effects {
        state: true,
        ..Effects::NONE
    },
};
