/* multiply_high: the upper 64 bits of the unsigned product. */
#ifndef MR_HELPER_MULTIPLY_HIGH_H
#define MR_HELPER_MULTIPLY_HIGH_H

#include "../base.h"

MR_INLINE u64 helper_multiply_high(u64 a, u64 b, struct mr_packet *pkt)
{
    (void)pkt;
    return (u64)((unsigned __int128)a * b >> 64);
}

#endif
