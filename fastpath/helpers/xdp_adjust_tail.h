/* xdp_adjust_tail: moves the frame's end by `offset`; what is added is zero. -EINVAL, and nothing moved,
 * if that leaves less than an Ethernet header, runs into the tailroom's end, or makes a frame longer
 * than 65535 bytes. */
#ifndef MR_HELPER_XDP_ADJUST_TAIL_H
#define MR_HELPER_XDP_ADJUST_TAIL_H

#include "../base.h"

MR_INLINE u64 helper_xdp_adjust_tail(u64 offset, struct mr_packet *pkt)
{
    s64 move = (s32)offset;
    s64 length = pkt->end - pkt->data;

    if (move > pkt->ceiling - pkt->end || length + move < 14 || length + move > 0xffff)
        return mr_errno(EINVAL);
    if (move > 0)
        memset(pkt->end, 0, (u64)move);
    pkt->end += move;
    return 0;
}

#endif
