/* Whole-word access to memory of any alignment.
 *
 * clang lowers packed structs, and memcpy and memcmp of unaligned memory, to single bytes that no
 * later compiler can join again; a plain load or store of the right width stays one instruction. So
 * header structs here are not packed, and these macros reach what no struct names. The types may
 * alias anything.
 */
#ifndef MILLRACE_WORD_H
#define MILLRACE_WORD_H

#include <linux/types.h>

/* A function of its own is a call that hides what pointers are; everything here is part of its caller. */
#define MILLRACE_INLINE static inline __attribute__((always_inline))
/* The same for the functions of this folder. Without debug information of its own, what such a function does has the
 * line of the author's call, and that is the line that refusals and reports name. */
#define MILLRACE_LIBRARY static inline __attribute__((always_inline, nodebug))

typedef __u16 __attribute__((may_alias)) millrace_word16;
typedef __u32 __attribute__((may_alias)) millrace_word32;
typedef __u64 __attribute__((may_alias)) millrace_word64;

/* The word at an address, in the byte order in which it lies there. */
#define load16(at) (*(const millrace_word16 *)(at))
#define load32(at) (*(const millrace_word32 *)(at))
#define load64(at) (*(const millrace_word64 *)(at))

#define store16(at, value) ((void)(*(millrace_word16 *)(at) = (value)))
#define store32(at, value) ((void)(*(millrace_word32 *)(at) = (value)))
#define store64(at, value) ((void)(*(millrace_word64 *)(at) = (value)))

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "Millrace runs little-endian BPF: compile with -target bpf or -target bpfel"
#endif

/* Network byte order (big-endian) to the machine's and back. */
#define ntohs(x) ((__u16)__builtin_bswap16((__u16)(x)))
#define ntohl(x) ((__u32)__builtin_bswap32((__u32)(x)))
#define htons(x) ntohs(x)
#define htonl(x) ntohl(x)

#endif
