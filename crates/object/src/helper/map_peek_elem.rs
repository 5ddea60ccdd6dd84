//! `map_peek_elem`: the value that would leave next; of a Bloom filter, whether a value is in it.
//!
//! `long bpf_map_peek_elem(map, value)`. Returns 0 or `-ENOENT`: there is none, and `value` is zeroed; the
//! value is not in the Bloom filter, which reads it.

use super::{Arg, Effects, Helper, Return};

/// kernel helper 89
pub static HELPER: Helper = Helper {
    number: 89,
    name: "map_peek_elem",
    args: &[Arg::Object, Arg::ValueOut],
    returns: Return::Scalar { min: -4095, max: 0 },
    kinds: &["queue", "stack", "bloom_filter"],
    effects: Effects {
        state: true,
        ..Effects::NONE
    },
};
