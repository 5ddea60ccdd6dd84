//! `get_smp_processor_id`: the worker's number, from 0.
//!
//! `u32 bpf_get_smp_processor_id(void)`. The same for the whole of a packet.

use super::{Effects, Helper, Return};

/// kernel helper 8
pub static HELPER: Helper = Helper {
    number: 8,
    name: "get_smp_processor_id",
    args: &[],
    returns: Return::Scalar {
        min: 0,
        max: u32::MAX as i64,
    },
    kinds: &[],
    effects: Effects::NONE,
};
