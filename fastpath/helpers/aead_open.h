/* aead_open: decrypts `length` bytes of the frame from `offset` in place. -EINVAL, and nothing changed, where the frame ends before the
 * tag's end; -EBADMSG where they are not authentic, and then they are zeros. */
#ifndef MR_HELPER_AEAD_OPEN_H
#define MR_HELPER_AEAD_OPEN_H

#include "aead.h"

MR_INLINE u64 helper_aead_open(u64 offset, u64 length, u8 *with, struct mr_packet *pkt)
{
    u8 *bytes = aead_bytes(pkt, offset, length);
    struct aead a;

    if (!bytes)
        return mr_errno(EINVAL);
    memcpy(&a, with, sizeof a);
    if (crypto_aead_chacha20poly1305_ietf_decrypt_detached(bytes, NULL, bytes, length, bytes + length, a.additional,
                                                           sizeof a.additional, a.nonce, a.key) == 0)
        return 0;
    memset(bytes, 0, length);
    return mr_errno(EBADMSG);
}

#endif
