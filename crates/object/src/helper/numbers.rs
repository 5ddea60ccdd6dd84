//! Arithmetic: checksums and products.

use super::Arg::{Bytes, Read, Scalar};
use super::{family, helper, within};

family! {
    /// `csum_diff`: the difference that replacing bytes makes to a checksum.
    ///
    /// `s64 bpf_csum_diff(from, from_size, to, to_size, seed)`: the Internet checksum (RFC 1071) of `to` less
    /// that of `from`, continuing `seed`, folded to 16 bits and not complemented, as Linux 6.18 gives it.
    /// Older kernels leave 32 bits that fold to the same, and return `-EINVAL` for sizes that are not
    /// multiples of 4; here bytes that lack to a whole word count as zeros. Either pointer may be null when
    /// its size is 0.
    CSUM_DIFF = helper(
        28,
        "csum_diff",
        &[Read { nullable: true }, Bytes { zero: true }, Read { nullable: true }, Bytes { zero: true }, Scalar],
        within(0, 0xffff),
    );

    /// `crc32c`: CRC-32C of a 64-bit word.
    ///
    /// `u32 crc32c(seed, word)`, continuing seed (polynomial of RFC 3720, appendix B.4); no inversion.
    CRC32C = helper(0x1_0050, "crc32c", &[Scalar, Scalar], within(0, u32::MAX as i64));

    /// `multiply_high`: the upper 64 bits of the unsigned product.
    ///
    /// `u64 multiply_high(a, b)`
    MULTIPLY_HIGH =
        helper(0x1_0051, "multiply_high", &[Scalar, Scalar], within(i64::MIN, i64::MAX));
}
