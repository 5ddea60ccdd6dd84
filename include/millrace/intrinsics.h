/* What processors have and the BPF instruction set lacks. */
#ifndef MILLRACE_INTRINSICS_H
#define MILLRACE_INTRINSICS_H

#include <millrace/word.h>

/* CRC-32C (polynomial of RFC 3720 B.4) of a 64-bit word, continuing `seed`. */
static __u32 (*const crc32c)(__u32 seed, __u64 word) = (void *)0x10050;

/* The upper 64 bits of the unsigned product of two 64-bit numbers. */
static __u64 (*const multiply_high)(__u64 a, __u64 b) = (void *)0x10051;

/* Left rotation; `by` is taken modulo the width. Compilers know the pattern. */
MILLRACE_LIBRARY __u32 rotate32(__u32 x, __u32 by)
{
	return x << (by & 31) | x >> (-by & 31);
}

MILLRACE_LIBRARY __u64 rotate64(__u64 x, __u32 by)
{
	return x << (by & 63) | x >> (-by & 63);
}

/* A uniform random number. When a capture is replayed the draws are the same again. */
static __u32 (*const random32)(void) = (void *)7;

#endif
