//! `crc32c`: CRC-32C of a 64-bit word.
//!
//! `u32 crc32c(seed, word)`, continuing seed (polynomial of RFC 3720, appendix B.4); no inversion.

use super::{Arg, Effects, Helper, Return};

/// helper of our own 0x10050
pub static HELPER: Helper = Helper {
    number: 0x1_0050,
    name: "crc32c",
    args: &[Arg::Scalar, Arg::Scalar],
    returns: Return::Scalar {
        min: 0,
        max: u32::MAX as i64,
    },
    kinds: &[],
    effects: Effects::NONE,
};
