//! `get_prandom_u32`: a random number of 32 bits.
//!
//! `u32 bpf_get_prandom_u32(void)`. A function of the packet's number and of how many draws came
//! before it, so that runs can be repeated.

use super::{Effects, Helper, Return};

/// kernel helper 7
pub static HELPER: Helper = Helper {
    number: 7,
    name: "get_prandom_u32",
    args: &[],
    returns: Return::Scalar {
        min: 0,
        max: u32::MAX as i64,
    },
    kinds: &[],
    effects: Effects {
        random: true,
        ..Effects::NONE
    },
};
