//! `map_delete`: removes an entry.
//!
//! `int map_delete(map, key)`: 1 if it was there, else 0.

use super::{Arg, Effects, Helper, Return};

/// helper of our own 0x10003
pub static HELPER: Helper = Helper {
    number: 0x1_0003,
    name: "map_delete",
    args: &[Arg::Object, Arg::Key],
    returns: Return::Scalar { min: 0, max: 1 },
    kinds: &["map"],
    effects: Effects {
        state: true,
        time: true,
        ..Effects::NONE
    },
};
