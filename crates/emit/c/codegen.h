/* What emitted C is written with, beyond fastpath/: arithmetic as RFC 9669 defines
 * it where C does not, and the slot that a prefetch pass leaves for the program.
 *
 * Conventions of the emitted functions: r3_1 is register 3 of call frame 1 as a number, p3_1 the same
 * register as a pointer; s1_24 is the stack object that begins 24 bytes below frame 1's r10. A frame
 * is one call path; frame 0 is the entry's. Loads through `volatile` are of values that a check has
 * been made on: read once, nobody can change them between the check and the use.
 */
#ifndef MR_CODEGEN_H
#define MR_CODEGEN_H

#include <stdio.h>
#include <stdlib.h>

#include "base.h"
#include "context.h"

/* All functions of a kind have the same parameters, whichever of them a program needs. */
#pragma clang diagnostic ignored "-Wunused-parameter"

typedef s16 __attribute__((may_alias, aligned(1))) mr_s16;
typedef s32 __attribute__((may_alias, aligned(1))) mr_s32;
typedef s64 __attribute__((may_alias, aligned(1))) mr_s64;
/* A pointer that was spilled to memory. */
typedef u8 *__attribute__((may_alias, aligned(1))) mr_pointer;

/* What the proof claims, in code that looks at it (`--claims`). */
static inline __attribute__((cold, noinline, unused)) void claim_failed(const char *claim, u64 value)
{
	fprintf(stderr, "not as claimed: %s: it is %#llx\n", claim, (unsigned long long)value);
	abort();
}

#define MR_CLAIM(holds, claim, value)                      \
	do {                                               \
		if (mr_unlikely(!(holds)))                 \
			claim_failed(claim, (u64)(value)); \
	} while (0)

/* Bytes of the packet that are not read again: their value is known. Code for AddressSanitizer compares it with the packet. */
#if __has_feature(address_sanitizer)
#define MR_KNOWN(type, place, value)                                                       \
	({                                                                                 \
		const type known = (type)(value);                                          \
		MR_CLAIM(known == *(const type *)(place), "known of a packet's bytes", known); \
		known;                                                                     \
	})
#else
#define MR_KNOWN(type, place, value) ((void)(place), (type)(value))
#endif

/* A sum of 16-bit words, folded (RFC 1071): the halves and the carry of their sum meet in the upper half. */
MR_INLINE u16 fold32(u64 sum)
{
	const u32 word = (u32)sum;

	return (u16)((word + (word << 16 | word >> 16)) >> 16);
}

MR_INLINE u16 fold64(u64 sum) { return fold32((sum + (sum << 32 | sum >> 32)) >> 32); }

/* A checksum from the sum of several updates, in place of the one that was folded for each of them. Code for AddressSanitizer compares them. */
#if __has_feature(address_sanitizer)
#define MR_MERGED(plain, merged)                                                           \
	({                                                                                 \
		const u16 once = (u16)(merged);                                            \
		MR_CLAIM(once == (u16)(plain), "a checksum of several updates", once);     \
		once;                                                                      \
	})
#else
#define MR_MERGED(plain, merged) ((void)(plain), (u16)(merged))
#endif

/* Division by zero gives 0, its remainder the dividend; the minimum by -1 wraps. */
MR_INLINE u64 divide64(u64 a, u64 b) { return b ? a / b : 0; }
MR_INLINE u32 divide32(u32 a, u32 b) { return b ? a / b : 0; }
MR_INLINE u64 modulo64(u64 a, u64 b) { return b ? a % b : a; }
MR_INLINE u32 modulo32(u32 a, u32 b) { return b ? a % b : a; }

MR_INLINE u64 signed_divide64(u64 a, u64 b)
{
	return b + 1 < 2 ? b * a : (u64)((s64)a / (s64)b); /* b is 0 or -1: a * b is what is asked for */
}

MR_INLINE u32 signed_divide32(u32 a, u32 b)
{
	return b + 1 < 2 ? b * a : (u32)((s32)a / (s32)b);
}

MR_INLINE u64 signed_modulo64(u64 a, u64 b)
{
	return b + 1 < 2 ? (b ? 0 : a) : (u64)((s64)a % (s64)b);
}

MR_INLINE u32 signed_modulo32(u32 a, u32 b)
{
	return b + 1 < 2 ? (b ? 0 : a) : (u32)((s32)a % (s32)b);
}

/* What was copied is from here on its own value: the compiler cannot read the original once more. */
MR_INLINE void read_once(u64 *word, u32 words)
{
	for (u32 i = 0; i < words; i++)
		__asm__("" : "+r"(word[i]));
}

/* The packet that comes a few after this one, from the second-level cache, where a receive queue leaves
 * it; once for all that the function reads of its headers. */
#define MR_AHEAD 4u

MR_INLINE void fetch_ahead(struct mr_packet *const *packets, u32 i, u32 n)
{
	if (i + MR_AHEAD < n)
		__builtin_prefetch(packets[i + MR_AHEAD]->data);
}

/* Packets whose state is fetched together: enough misses in flight to fill the core's buffers, few
 * enough that what was fetched is still in the first-level cache when its packet runs. */
#define MR_BATCH 32u

/* Fewer packets than this run plainly. */
#ifndef MR_FEW
#define MR_FEW 4u
#endif

#endif
