//! Authenticated encryption of parts of a packet.

use super::Arg::{Context, In, Scalar};
use super::{STATUS, family, helper};

/// Bytes of `struct aead` (include/millrace/aead.h): a key of 32, a nonce of 12, and 8 bytes of additional data.
const AEAD: u32 = 52;

family! {
    /// `aead_seal`: encrypts and authenticates a part of the packet in place.
    ///
    /// `long aead_seal(ctx, offset, length, const struct aead *with)`: ChaCha20-Poly1305 of RFC 8439 over `length` bytes from
    /// `offset`; the 16 bytes behind them become the tag. 0; `-EINVAL`, and nothing is changed, where the frame ends before.
    /// Pointers into the packet stay valid.
    AEAD_SEAL =
        helper(0x1_0090, "aead_seal", &[Context, Scalar, Scalar, In(AEAD)], STATUS)
            .writes_packet();

    /// `aead_open`: decrypts a part of the packet in place, if it is authentic.
    ///
    /// `long aead_open(ctx, offset, length, const struct aead *with)`: of what `aead_seal` made with the same arguments. 0;
    /// `-EINVAL`, and nothing is changed, where the frame ends before the tag's end; `-EBADMSG` where the tag is not that of bytes,
    /// key, nonce and additional data, and then the bytes are zeros.
    AEAD_OPEN =
        helper(0x1_0091, "aead_open", &[Context, Scalar, Scalar, In(AEAD)], STATUS)
            .writes_packet();
}
