/* get_prandom_u32: a draw that is a function of the seed, the packet's number and how many draws the
 * packet made before, so that it is the same on whatever core and in whatever order packets run.
 * `seed` is the configuration's sketch_seed. */
#ifndef MR_HELPER_GET_PRANDOM_U32_H
#define MR_HELPER_GET_PRANDOM_U32_H

#include "../base.h"

MR_INLINE u64 helper_get_prandom_u32(u64 seed, struct mr_packet *pkt)
{
    return mr_random(mr_random(seed, pkt->number), pkt->draws++) >> 32;
}

#endif
