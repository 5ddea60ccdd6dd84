//! `map_refresh`: the value of a key, its age now 0, or null.
//!
//! `V *map_refresh(map, key)`

use super::{Arg, Effects, Helper, Return};

/// helper of our own 0x10001
pub static HELPER: Helper = Helper {
    number: 0x1_0001,
    name: "map_refresh",
    args: &[Arg::Object, Arg::Key],
    returns: Return::ValueOrNull,
    kinds: &["map"],
    effects: Effects {
        state: true,
        time: true,
        ..Effects::NONE
    },
};
