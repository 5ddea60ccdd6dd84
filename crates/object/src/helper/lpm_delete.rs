//! `lpm_delete`: removes a prefix.
//!
//! `int lpm_delete(lpm, key, prefix_bits)`: 1 if it was there, else 0.

use super::{Arg, Effects, Helper, Return};

/// helper of our own 0x10042
pub static HELPER: Helper = Helper {
    number: 0x1_0042,
    name: "lpm_delete",
    args: &[Arg::Object, Arg::Key, Arg::Scalar],
    returns: Return::Scalar { min: 0, max: 1 },
    kinds: &["lpm"],
    effects: Effects {
        state: true,
        ..Effects::NONE
    },
};
