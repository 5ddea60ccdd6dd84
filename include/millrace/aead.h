/* Authenticated encryption of parts of a frame: ChaCha20-Poly1305 (RFC 8439). Include it by name. Whoever runs a function that does
 * needs libsodium (Debian: libsodium23). */
#ifndef MILLRACE_AEAD_H
#define MILLRACE_AEAD_H

#include <millrace/packet.h>

/* No nonce may be used twice with one key. */
struct aead {
	__u8 key[32], nonce[12];
	__u8 additional[8]; /* authenticated, and sent some other way */
};

#define AEAD_TAG 16

/* Encrypts `bytes` bytes of the frame from offset `at` on; the 16 bytes behind them become the tag. 0; below 0, and nothing changed, where
 * the frame ends before the tag would. Pointers into the frame stay valid. */
static long (*const aead_seal)(const struct packet *p, __u64 at, __u64 bytes, const struct aead *with) = (void *)0x10090;

/* Decrypts what was sealed so. 0; below 0 where it was not, and then these bytes are zeros, or where the frame ends before. */
static long (*const aead_open)(const struct packet *p, __u64 at, __u64 bytes, const struct aead *with) = (void *)0x10091;

#endif
