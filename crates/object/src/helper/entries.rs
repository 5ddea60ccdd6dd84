//! Entries of the kernel's maps by key, index or place.

use super::Arg::{Any, Function, Key, KeyOut, Object, Scalar, Value};
use super::{EXPANSION, Return, STATUS, family, helper, within};
use crate::contract::Reach::{Bucket, Entry, Whole};
use crate::contract::{look, touch, write};

family! {
    /// `map_lookup_elem`: the value of a key, or null.
    ///
    /// `void *bpf_map_lookup_elem(map, key)`. Arrays: null beyond the last element. Tries: the value of the
    /// longest prefix that matches. LRU maps: the entry counts as used. Maps of maps: the map that is there, to
    /// be used as an object in later calls.
    MAP_LOOKUP_ELEM =
        helper(1, "map_lookup_elem", &[Object, Key], Return::ValueOrNull).does(touch(Whole));

    /// `map_update_elem`: adds or overwrites an entry.
    ///
    /// `long bpf_map_update_elem(map, key, value, flags)`; flags are `BPF_ANY` 0, `BPF_NOEXIST` 1,
    /// `BPF_EXIST` 2. Returns 0 or
    ///
    /// - `-EINVAL`: unknown flags, or a prefix longer than the key;
    /// - `-EEXIST`: `BPF_NOEXIST`, and the key is there (always, in arrays);
    /// - `-ENOENT`: `BPF_EXIST`, and it is not;
    /// - `-E2BIG`: full, or beyond the last element of an array;
    /// - `-ENOSPC`: full, tries.
    MAP_UPDATE_ELEM =
        helper(2, "map_update_elem", &[Object, Key, Value, Scalar], STATUS).does(write(Whole));

    /// `map_delete_elem`: removes an entry.
    ///
    /// `long bpf_map_delete_elem(map, key)`. Returns 0, `-ENOENT` if it was not there, `-EINVAL` for arrays,
    /// whose elements cannot be removed.
    MAP_DELETE_ELEM = helper(3, "map_delete_elem", &[Object, Key], STATUS).does(write(Whole));

    /// `for_each_map_elem`: calls a function for each entry of a map, or until it says that it is enough.
    ///
    /// `long bpf_for_each_map_elem(map, long (*function)(map, const void *key, void *value, void *context), void
    /// *context, u64 flags)`. Returns how often the function was called; `-EINVAL` if any flag is set. Arrays are
    /// visited in order of their indices, other maps in one of their own. The entry at hand may be deleted; one
    /// that is added meanwhile may be visited or not, as in the kernel.
    FOR_EACH_MAP_ELEM = helper(
        164,
        "for_each_map_elem",
        &[Object, Function, Any, Scalar],
        within(-4095, u32::MAX as i64),
    ).does(look(Whole)).other();

    /// `map_lookup_percpu_elem`: the value of a key on a given CPU, or null.
    ///
    /// `void *bpf_map_lookup_percpu_elem(map, key, u32 cpu)`. A worker has its own CPU's values only; for every
    /// other number the result is null, as for a CPU that does not exist.
    MAP_LOOKUP_PERCPU_ELEM =
        helper(195, "map_lookup_percpu_elem", &[Object, Key, Scalar], Return::ValueOrNull)
            .does(touch(Bucket));

    /// `map_slot`: the entry in one place of a map, or null if there is none.
    ///
    /// The expansion of `bpf_for_each_map_elem` asks for every place below the map's capacity in turn.
    /// Null leaves zeros in the key's bytes. An entry stays in its place for as long as it is there, whatever
    /// comes and goes beside it; looking does not count as use.
    MAP_SLOT =
        helper(EXPANSION, "map_slot", &[Object, Scalar, KeyOut], Return::ValueOrNull)
            .does(look(Entry));
}
