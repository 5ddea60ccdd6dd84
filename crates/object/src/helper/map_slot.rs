//! `map_slot`: the entry in one place of a map, or null if there is none.
//!
//! What `bpf_for_each_map_elem` is expanded into asks for every place below the map's capacity in turn.
//! Null leaves zeros in the key's bytes. An entry stays in its place for as long as it is there, whatever
//! comes and goes beside it; looking does not count as use.

use super::{Arg, EXPANSION, Effects, Helper, Return};

/// internal helper
pub static HELPER: Helper = Helper {
    number: EXPANSION,
    name: "map_slot",
    args: &[Arg::Object, Arg::Scalar, Arg::KeyOut],
    returns: Return::ValueOrNull,
    kinds: &[
        "hash",
        "lru_hash",
        "array",
        "percpu_array",
        "percpu_hash",
        "lru_percpu_hash",
    ],
    effects: Effects {
        state: true,
        ..Effects::NONE
    },
};
