//! `map_get`: the value of a key, or null.
//!
//! `V *map_get(map, key)`. Does not refresh; an entry is absent once its age reaches `expire_after`.

use super::{Arg, Effects, Helper, Return};

/// helper of our own 0x10000
pub static HELPER: Helper = Helper {
    number: 0x1_0000,
    name: "map_get",
    args: &[Arg::Object, Arg::Key],
    returns: Return::ValueOrNull,
    kinds: &["map"],
    effects: Effects {
        state: true,
        time: true,
        ..Effects::NONE
    },
};
