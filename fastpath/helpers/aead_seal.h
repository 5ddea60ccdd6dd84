/* aead_seal: encrypts `length` bytes of the frame from `offset` in place; the 16 bytes behind become the tag. -EINVAL, and nothing changed,
 * where the frame ends before. */
#ifndef MR_HELPER_AEAD_SEAL_H
#define MR_HELPER_AEAD_SEAL_H

#include "aead.h"

MR_INLINE u64 helper_aead_seal(u64 offset, u64 length, u8 *with, struct mr_packet *pkt)
{
    u8 *bytes = aead_bytes(pkt, offset, length);
    struct aead a;

    if (!bytes)
        return mr_errno(EINVAL);
    memcpy(&a, with, sizeof a); /* it may be bytes of the packet, too */
    crypto_aead_chacha20poly1305_ietf_encrypt_detached(bytes, bytes + length, NULL, bytes, length, a.additional,
                                                       sizeof a.additional, NULL, a.nonce, a.key);
    return 0;
}

#endif
