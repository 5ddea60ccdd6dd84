//! `ringbuf_query`: what a ring buffer holds.
//!
//! `u64 bpf_ringbuf_query(ringbuf, flags)`: 0 `BPF_RB_AVAIL_DATA`, bytes not yet taken; 1
//! `BPF_RB_RING_SIZE`, its bytes; 2 `BPF_RB_CONS_POS` and 3 `BPF_RB_PROD_POS`, positions of consumer and
//! producer. Otherwise 0.

use super::{Arg, Effects, Helper, Return};

/// kernel helper 134
pub static HELPER: Helper = Helper {
    number: 134,
    name: "ringbuf_query",
    args: &[Arg::Object, Arg::Scalar],
    returns: Return::Scalar {
        min: 0,
        max: i64::MAX,
    },
    kinds: &["ringbuf"],
    effects: Effects {
        state: true,
        ..Effects::NONE
    },
};
