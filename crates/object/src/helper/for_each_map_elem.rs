//! `for_each_map_elem`: calls a function for each entry of a map, or until it says that it is enough.
//!
//! `long bpf_for_each_map_elem(map, long (*function)(map, const void *key, void *value, void *context), void
//! *context, u64 flags)`. Returns how often the function was called; `-EINVAL` if any flag is set. Arrays are
//! visited in order of their indices, other maps in one of their own. The entry at hand may be deleted; one
//! that is added meanwhile may be visited or not, as in the kernel.

use super::{Arg, Effects, Helper, Return, map_slot};

/// kernel helper 164
pub static HELPER: Helper = Helper {
    number: 164,
    name: "for_each_map_elem",
    args: &[Arg::Object, Arg::Function, Arg::Any, Arg::Scalar],
    returns: Return::Scalar {
        min: -4095,
        max: u32::MAX as i64,
    },
    kinds: map_slot::HELPER.kinds,
    effects: Effects {
        state: true,
        other: true,
        ..Effects::NONE
    },
};
