//! Records for the host: ring buffers and perf event arrays.

use super::Arg::{Bytes, Context, Object, Read, Record, Scalar};
use super::{Return, STATUS, family, helper, within};
use crate::contract::Reach::{Entry, Whole};
use crate::contract::{look, write};

family! {
    /// `perf_event_output`: copies a record, and bytes of the packet behind it, to the host.
    ///
    /// `long bpf_perf_event_output(ctx, map, flags, data, size)`; the flags' low 32 bits are the CPU, or
    /// 0xffffffff for this one, the 20 above them how many bytes of the packet. Returns 0 or
    ///
    /// - `-EINVAL`: other flags;
    /// - `-EFAULT`: the packet is shorter;
    /// - `-E2BIG`: the map has no such entry;
    /// - `-EOPNOTSUPP`: another CPU's entry;
    /// - `-ENOSPC`: the host has not yet taken enough of the earlier records.
    PERF_EVENT_OUTPUT = helper(
        25,
        "perf_event_output",
        &[Context, Object, Scalar, Read { nullable: false }, Bytes { zero: true }],
        STATUS,
    ).does(write(Whole));

    /// `ringbuf_output`: copies a record into a ring buffer.
    ///
    /// `long bpf_ringbuf_output(ringbuf, data, size, flags)`; flags are `BPF_RB_NO_WAKEUP` 1 and
    /// `BPF_RB_FORCE_WAKEUP` 2 and change nothing here. Returns 0, `-EAGAIN` if there is no room, `-E2BIG`
    /// above 2^30 - 1 bytes, `-EINVAL` for other flags.
    RINGBUF_OUTPUT = helper(
        130,
        "ringbuf_output",
        &[Object, Read { nullable: false }, Bytes { zero: true }, Scalar],
        STATUS,
    ).does(write(Whole));

    /// `ringbuf_reserve`: reserves a record in a ring buffer.
    ///
    /// `void *bpf_ringbuf_reserve(ringbuf, size, flags)`; the size is a constant, flags must be 0. Null if
    /// there is no room. The record is zero, where the kernel's holds what lay there. It must be submitted or
    /// discarded before the program ends.
    RINGBUF_RESERVE =
        helper(131, "ringbuf_reserve", &[Object, Scalar, Scalar], Return::RecordOrNull)
            .does(write(Whole));

    /// `ringbuf_submit`: hands a reserved record to the host.
    ///
    /// `void bpf_ringbuf_submit(data, flags)`; flags as `ringbuf_output`. The record is gone afterwards.
    /// Nothing is returned; `r0` is 0.
    RINGBUF_SUBMIT =
        helper(132, "ringbuf_submit", &[Record, Scalar], within(0, 0)).does(write(Entry));

    /// `ringbuf_discard`: gives a reserved record back unread.
    ///
    /// `void bpf_ringbuf_discard(data, flags)`; flags as `ringbuf_output`. The record is gone afterwards.
    /// Nothing is returned; `r0` is 0.
    RINGBUF_DISCARD =
        helper(133, "ringbuf_discard", &[Record, Scalar], within(0, 0)).does(write(Entry));

    /// `ringbuf_query`: what a ring buffer holds.
    ///
    /// `u64 bpf_ringbuf_query(ringbuf, flags)`: 0 `BPF_RB_AVAIL_DATA`, bytes not yet taken; 1
    /// `BPF_RB_RING_SIZE`, its bytes; 2 `BPF_RB_CONS_POS` and 3 `BPF_RB_PROD_POS`, positions of consumer and
    /// producer. Otherwise 0.
    RINGBUF_QUERY =
        helper(134, "ringbuf_query", &[Object, Scalar], within(0, i64::MAX)).does(look(Whole));
}
