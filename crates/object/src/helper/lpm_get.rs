//! `lpm_get`: the value of the longest prefix that matches, or null.
//!
//! `V *lpm_get(lpm, key)`; the key is an address in network order.

use super::{Arg, Effects, Helper, Return};

/// helper of our own 0x10040
pub static HELPER: Helper = Helper {
    number: 0x1_0040,
    name: "lpm_get",
    args: &[Arg::Object, Arg::Key],
    returns: Return::ValueOrNull,
    kinds: &["lpm"],
    effects: Effects {
        state: true,
        ..Effects::NONE
    },
};
