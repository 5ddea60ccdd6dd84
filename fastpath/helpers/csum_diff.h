/* csum_diff: the Internet checksum (RFC 1071) of `to`, less that of `from`, continuing `seed`, folded
 * to 16 bits and not complemented, as kernels from 6.13 give it; older ones leave 32 bits that fold to
 * the same. -EINVAL unless both sizes are multiples of 4. */
#ifndef MR_HELPER_CSUM_DIFF_H
#define MR_HELPER_CSUM_DIFF_H

#include "../base.h"

/* One's complement sum of whole 32-bit words; at most 2^29 bytes, so that 64 bits cannot overflow. */
MR_INLINE u64 helper_csum_words(const u8 *p, u64 bytes)
{
    u64 sum = 0;

    for (u64 i = 0; i < bytes; i += 4)
        sum += mr_load32(p + i);
    return sum;
}

MR_INLINE u64 helper_csum_fold(u64 sum)
{
    sum = (sum & 0xffffffff) + (sum >> 32);
    sum = (sum & 0xffffffff) + (sum >> 32);
    sum = (sum & 0xffff) + (sum >> 16);
    sum = (sum & 0xffff) + (sum >> 16);
    return sum;
}

MR_INLINE u64 helper_csum_diff(u8 *from, u64 from_size, u8 *to, u64 to_size, u64 seed,
                               struct mr_packet *pkt)
{
    u64 sum = (u32)seed;

    (void)pkt;
    if ((from_size | to_size) & 3)
        return mr_errno(EINVAL);
    if (to_size)
        sum += helper_csum_words(to, to_size);
    /* Subtracting is adding the complement. */
    if (from_size)
        sum += 0xffff - helper_csum_fold(helper_csum_words(from, from_size));
    return helper_csum_fold(sum);
}

#endif
