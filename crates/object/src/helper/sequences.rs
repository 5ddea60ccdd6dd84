//! Values without a key: queues, stacks, Bloom filters.

use super::Arg::{Object, Scalar, Value, ValueOut};
use super::{STATUS, family, helper};
use crate::contract::Reach::Whole;
use crate::contract::{look, write};

family! {
    /// `map_push_elem`: puts a value in.
    ///
    /// `long bpf_map_push_elem(map, value, flags)`; flags are `BPF_ANY` 0 and, not for Bloom filters,
    /// `BPF_EXIST` 2: if there is no room the oldest value gives way. Returns 0, `-EINVAL` for other flags, or
    /// `-E2BIG`: full.
    MAP_PUSH_ELEM =
        helper(87, "map_push_elem", &[Object, Value, Scalar], STATUS).does(write(Whole));

    /// `map_pop_elem`: takes a value out, the oldest of a queue, the newest of a stack.
    ///
    /// `long bpf_map_pop_elem(map, value)`. Returns 0 or `-ENOENT`: there is none, and `value` is zeroed.
    MAP_POP_ELEM = helper(88, "map_pop_elem", &[Object, ValueOut], STATUS).does(write(Whole));

    /// `map_peek_elem`: the value that would leave next; of a Bloom filter, whether a value is in it.
    ///
    /// `long bpf_map_peek_elem(map, value)`. Returns 0 or `-ENOENT`: there is none, and `value` is zeroed; the
    /// value is not in the Bloom filter, which reads it.
    MAP_PEEK_ELEM = helper(89, "map_peek_elem", &[Object, ValueOut], STATUS).does(look(Whole));
}
