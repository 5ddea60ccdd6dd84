/* xdp_adjust_head: moves the frame's first byte by `offset`, the metadata with it. -EINVAL, and nothing
 * moved, if that leaves less than an Ethernet header, runs into the headroom's end, or makes a frame
 * longer than 65535 bytes. What comes into the frame is what was cut there, and zeros (bare.h). */
#ifndef MR_HELPER_XDP_ADJUST_HEAD_H
#define MR_HELPER_XDP_ADJUST_HEAD_H

#include "bare.h"

#define HELPER_ETH_HLEN 14

MR_INLINE u64 helper_xdp_adjust_head(u64 offset, struct mr_packet *pkt)
{
    s64 move = (s32)offset;
    s64 meta = pkt->data - pkt->meta;
    s64 length = pkt->end - pkt->data;

    if (move > length - HELPER_ETH_HLEN || move < pkt->floor + meta - pkt->data ||
        length - move > 0xffff)
        return mr_errno(EINVAL);
    helper_bare(pkt, pkt->meta + move);
    if (meta)
        memmove(pkt->meta + move, pkt->meta, (u64)meta);
    pkt->meta += move;
    pkt->data += move;
    return 0;
}

#endif
