/* csum_diff: the Internet checksum (RFC 1071) of `to`, less that of `from`, continuing `seed`, folded
 * to 16 bits and not complemented, bit for bit as Linux 6.18 gives it. Older kernels leave 32 bits that
 * fold to the same, and answer -EINVAL where a size is not a multiple of 4; here as there now, bytes that
 * lack to a whole word count as zeros.
 */
#ifndef MR_HELPER_CSUM_DIFF_H
#define MR_HELPER_CSUM_DIFF_H

#include "../base.h"

/* One's complement sum of 32-bit words and `seed`, in 32 bits; 0 only if all of them are. At most 2^29
 * bytes, so that 64 bits cannot overflow. */
MR_INLINE u32 helper_csum_words(const u8 *p, u64 bytes, u32 seed)
{
    u64 sum = seed, i;

    for (i = 0; i + 4 <= bytes; i += 4)
        sum += mr_load32(p + i);
    for (; i < bytes; i++)
        sum += (u64)p[i] << 8 * (i & 3);
    sum = (sum & 0xffffffff) + (sum >> 32);
    return (u32)((sum & 0xffffffff) + (sum >> 32));
}

/* To subtract is to add the complement. 0 and 0xffff are one number, and which of them comes out
 * depends on where the complement is taken: here where the kernel takes it. */
MR_INLINE u64 helper_csum_diff(u8 *from, u64 from_size, u8 *to, u64 to_size, u64 seed,
                               struct mr_packet *pkt)
{
    u64 sum = (u32)seed;

    (void)pkt;
    if (from_size && to_size)
        sum = (u64)helper_csum_words(to, to_size, (u32)seed) + (u32)~helper_csum_words(from, from_size, 0);
    else if (to_size)
        sum = helper_csum_words(to, to_size, (u32)seed);
    else if (from_size)
        sum = (u32)~helper_csum_words(from, from_size, ~(u32)seed);
    sum = (sum & 0xffffffff) + (sum >> 32);
    sum = (sum & 0xffff) + (sum >> 16);
    return (sum & 0xffff) + (sum >> 16);
}

#endif
