//! `map_pop_elem`: takes a value out, the oldest of a queue, the newest of a stack.
//!
//! `long bpf_map_pop_elem(map, value)`. Returns 0 or `-ENOENT`: there is none, and `value` is zeroed.

use super::{Arg, Effects, Helper, Return};

/// kernel helper 88
pub static HELPER: Helper = Helper {
    number: 88,
    name: "map_pop_elem",
    args: &[Arg::Object, Arg::ValueOut],
    returns: Return::Scalar { min: -4095, max: 0 },
    kinds: &["queue", "stack"],
    effects: Effects {
        state: true,
        ..Effects::NONE
    },
};
