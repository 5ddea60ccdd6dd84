//! Loops with a bound: `check` lays them out, so that there is no C.

use super::Arg::{Any, Function, Iterator, Scalar};
use super::{STATUS, family, helper, within};

/// The most rounds of one call (include/linux/bpf_verifier.h, `BPF_MAX_LOOPS`).
pub const MOST_ROUNDS: u32 = 1 << 23;

family! {
    /// `loop`: calls a function so many times, or until it says that it is enough.
    ///
    /// `long bpf_loop(u32 n, long (*function)(u64 index, void *context), void *context, u64 flags)`. Returns how
    /// often the function was called; `-EINVAL` if any flag is set; `-E2BIG` for more than [`MOST_ROUNDS`] rounds (as a 32-bit
    /// number where the kernel puts a loop in the call's place). A function that returns anything but 0 is not called again.
    LOOP =
        helper(181, "loop", &[Scalar, Function, Any, Scalar], within(-4095, u32::MAX as i64))
            .other();

    /// `iter_num_new`: begins a walk over numbers.
    ///
    /// `int bpf_iter_num_new(struct bpf_iter_num *, int start, int end)`. `-EINVAL` if the start is above the end,
    /// `-E2BIG` for more than 2^23 numbers; then, too, the walk has begun, and is over.
    ITER_NUM_NEW = helper(0x20004, "iter_num_new", &[Iterator, Scalar, Scalar], STATUS).other();

    /// `iter_num_next`: the next number of a walk, or null.
    ///
    /// `int *bpf_iter_num_next(struct bpf_iter_num *)`. The number is in the iterator itself.
    ITER_NUM_NEXT =
        helper(0x20005, "iter_num_next", &[Iterator], within(i64::MIN, i64::MAX)).other();

    /// `iter_num_destroy`: ends a walk over numbers.
    ///
    /// `void bpf_iter_num_destroy(struct bpf_iter_num *)`. Every walk that has begun is ended, on every way.
    ITER_NUM_DESTROY = helper(0x20006, "iter_num_destroy", &[Iterator], within(0, 0)).other();
}
