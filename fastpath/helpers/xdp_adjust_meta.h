/* xdp_adjust_meta: moves the metadata's start by `offset`. -EINVAL outside of headroom and frame start;
 * -EACCES unless its size stays a multiple of 4 up to 252. Nothing moved then. */
#ifndef MR_HELPER_XDP_ADJUST_META_H
#define MR_HELPER_XDP_ADJUST_META_H

#include "bare.h"

MR_INLINE u64 helper_xdp_adjust_meta(u64 offset, struct mr_packet *pkt)
{
    s64 move = (s32)offset;
    s64 size = pkt->data - pkt->meta - move;

    if (size < 0 || size > pkt->data - pkt->floor)
        return mr_errno(EINVAL);
    if (size % 4 || size > 252)
        return mr_errno(EACCES);
    helper_bare(pkt, pkt->meta + move);
    pkt->meta += move;
    return 0;
}

#endif
