//! `map_put`: adds or overwrites an entry.
//!
//! `V *map_put(map, key, value)`: the stored value, its age 0, or null: full.

use super::{Arg, Effects, Helper, Return};

/// helper of our own 0x10002
pub static HELPER: Helper = Helper {
    number: 0x1_0002,
    name: "map_put",
    args: &[Arg::Object, Arg::Key, Arg::Value],
    returns: Return::ValueOrNull,
    kinds: &["map"],
    effects: Effects {
        state: true,
        time: true,
        ..Effects::NONE
    },
};
