/* aead: what aead_seal and aead_open have in common: ChaCha20-Poly1305 (RFC 8439) of libsodium, which a module that calls them is linked
 * with. Its two functions are declared here as they have been since version 1.0.9, so that its headers need not be there. */
#ifndef MR_HELPER_AEAD_H
#define MR_HELPER_AEAD_H

#include "../base.h"

#define AEAD_TAG 16u

int sodium_init(void);
int crypto_aead_chacha20poly1305_ietf_encrypt_detached(unsigned char *c, unsigned char *mac, unsigned long long *mac_bytes,
                                                       const unsigned char *m, unsigned long long bytes,
                                                       const unsigned char *ad, unsigned long long ad_bytes,
                                                       const unsigned char *none, const unsigned char *nonce,
                                                       const unsigned char *key);
int crypto_aead_chacha20poly1305_ietf_decrypt_detached(unsigned char *m, unsigned char *none, const unsigned char *c,
                                                       unsigned long long bytes, const unsigned char *mac,
                                                       const unsigned char *ad, unsigned long long ad_bytes,
                                                       const unsigned char *nonce, const unsigned char *key);

/* struct aead of include/millrace/aead.h */
struct aead {
    u8 key[32], nonce[12], additional[8];
};

/* Chooses the fastest code for the processor; may be called any number of times, by any thread. */
__attribute__((constructor)) static void aead_begin(void)
{
    (void)sodium_init();
}

/* The bytes, or NULL where the frame ends before the tag's end. */
MR_INLINE u8 *aead_bytes(const struct mr_packet *pkt, u64 offset, u64 length)
{
    u64 frame = (u64)(pkt->end - pkt->data);

    return frame >= AEAD_TAG && offset <= frame - AEAD_TAG && length <= frame - AEAD_TAG - offset ? pkt->data + offset : NULL;
}

#endif
