//! State of the handler dialect (docs/dialect.md).

use super::Arg::{Key, Object, Scalar, Value};
use super::{Return, family, helper, within};
use crate::contract::Reach::{Bucket, Entry, Whole};
use crate::contract::{add, look, touch, write};

family! {
    /// `map_get`: the value of a key, or null.
    ///
    /// `V *map_get(map, key)`. Does not refresh; an entry is absent once its age reaches `expire_after`.
    MAP_GET =
        helper(0x1_0000, "map_get", &[Object, Key], Return::ValueOrNull).does(look(Bucket)).time();

    /// `map_refresh`: the value of a key, its age now 0, or null.
    ///
    /// `V *map_refresh(map, key)`
    MAP_REFRESH =
        helper(0x1_0001, "map_refresh", &[Object, Key], Return::ValueOrNull)
            .does(touch(Bucket)).time();

    /// `map_put`: adds or overwrites an entry.
    ///
    /// `V *map_put(map, key, value)`: the stored value, its age 0, or null: full.
    MAP_PUT =
        helper(0x1_0002, "map_put", &[Object, Key, Value], Return::ValueOrNull)
            .does(write(Whole)).time();

    /// `map_delete`: removes an entry.
    ///
    /// `int map_delete(map, key)`: 1 if it was there, else 0.
    MAP_DELETE =
        helper(0x1_0003, "map_delete", &[Object, Key], within(0, 1)).does(write(Whole)).time();

    /// `vector_at`: an element, or null beyond the last.
    ///
    /// `V *vector_at(vector, index)`, counted from 0.
    VECTOR_AT =
        helper(0x1_0010, "vector_at", &[Object, Scalar], Return::ValueOrNull).does(look(Entry));

    /// `allocator_lease`: leases a number.
    ///
    /// `s64 allocator_lease(allocator, value)`: a number that was free, the value kept with it, its age 0;
    /// or -1: none is free.
    ALLOCATOR_LEASE =
        helper(0x1_0020, "allocator_lease", &[Object, Value], within(-1, i64::MAX))
            .does(write(Whole)).time();

    /// `allocator_get`: the value kept with a leased number, or null.
    ///
    /// `V *allocator_get(allocator, number)`. Does not refresh; a lease ends once its age reaches
    /// `expire_after`.
    ALLOCATOR_GET =
        helper(0x1_0021, "allocator_get", &[Object, Scalar], Return::ValueOrNull)
            .does(look(Entry)).time();

    /// `allocator_refresh`: the value kept with a leased number, its age now 0, or null.
    ///
    /// `V *allocator_refresh(allocator, number)`
    ALLOCATOR_REFRESH =
        helper(0x1_0022, "allocator_refresh", &[Object, Scalar], Return::ValueOrNull)
            .does(touch(Entry)).time();

    /// `allocator_free`: gives a number back.
    ///
    /// `int allocator_free(allocator, number)`: 1 if it was leased, else 0.
    ALLOCATOR_FREE =
        helper(0x1_0023, "allocator_free", &[Object, Scalar], within(0, 1))
            .does(write(Whole)).time();

    /// `sketch_count`: the estimate for a key.
    ///
    /// `u32 sketch_count(sketch, key)`: never below the true count of the window, at most 2^32 - 1.
    SKETCH_COUNT =
        helper(0x1_0030, "sketch_count", &[Object, Key], within(0, u32::MAX as i64))
            .does(look(Bucket)).time();

    /// `sketch_add`: adds to the count of a key.
    ///
    /// `u32 sketch_add(sketch, key, amount)`: the estimate afterwards; counts stop at 2^32 - 1.
    SKETCH_ADD =
        helper(0x1_0031, "sketch_add", &[Object, Key, Scalar], within(0, u32::MAX as i64))
            .does(add(Bucket)).time();

    /// `lpm_get`: the value of the longest prefix that matches, or null.
    ///
    /// `V *lpm_get(lpm, key)`; the key is an address in network order.
    LPM_GET = helper(0x1_0040, "lpm_get", &[Object, Key], Return::ValueOrNull).does(look(Whole));

    /// `lpm_put`: adds or overwrites a prefix.
    ///
    /// `V *lpm_put(lpm, key, prefix_bits, value)`: the stored value, or null: full, or more bits than the key
    /// has.
    LPM_PUT =
        helper(0x1_0041, "lpm_put", &[Object, Key, Scalar, Value], Return::ValueOrNull)
            .does(write(Whole));

    /// `lpm_delete`: removes a prefix.
    ///
    /// `int lpm_delete(lpm, key, prefix_bits)`: 1 if it was there, else 0.
    LPM_DELETE =
        helper(0x1_0042, "lpm_delete", &[Object, Key, Scalar], within(0, 1)).does(write(Whole));

    /// `classify`: the class of a key.
    ///
    /// `u32 classify(classifier, key)`: that of the first rule that contains it, 0 if none does; below `.classes`.
    CLASSIFY =
        helper(0x1_0060, "classify", &[Object, Key], within(0, u32::MAX as i64)).does(look(Whole));

    /// `distributed_add`: adds to a member.
    ///
    /// `int distributed_add(distributed, member, n)`: 0. The member is counted from 0 and a constant.
    DISTRIBUTED_ADD =
        helper(0x1_0070, "distributed_add", &[Object, Scalar, Scalar], within(0, 0))
            .does(add(Entry));

    /// `distributed_max`: makes a member the larger of itself and a number.
    ///
    /// `int distributed_max(distributed, member, n)`: 0
    DISTRIBUTED_MAX =
        helper(0x1_0071, "distributed_max", &[Object, Scalar, Scalar], within(0, 0))
            .does(add(Entry));

    /// `distributed_or`: sets bits of a member.
    ///
    /// `int distributed_or(distributed, member, bits)`: 0
    DISTRIBUTED_OR =
        helper(0x1_0072, "distributed_or", &[Object, Scalar, Scalar], within(0, 0))
            .does(add(Entry));

    /// `distributed_read`: a member.
    ///
    /// `u64 distributed_read(distributed, member)`: with what this core did, and what others did up to `staleness` ago.
    DISTRIBUTED_READ =
        helper(0x1_0073, "distributed_read", &[Object, Scalar], within(i64::MIN, i64::MAX))
            .does(look(Whole));
}
