/* A broadcast to the interfaces of a devmap (kernel/bpf/devmap.c dev_map_enqueue_multi). A fate is one port
 * or every port but the ingress, so these are the broadcasts there are: to nobody, which drops the frame,
 * to one port, and to every port but the ingress. Any other aborts the frame, as if its target did not
 * exist. An interface of no port is left out, as the kernel leaves out what is down.
 */
#ifndef MR_BROADCAST_H
#define MR_BROADCAST_H

#include "targets.h"

struct broadcast {
    u64 ports[4]; /* bits of ports below 256 */
    u32 count;    /* how many */
    u32 last;
    int beyond; /* a port of 256 or above was named */
};

MR_INLINE void broadcast_add(struct broadcast *b, const struct mr_packet *pkt, u64 flags, u32 port)
{
    u64 bit = 1ull << port % 64;

    if (port >= pkt->ports || (flags & TARGETS_NOT_INGRESS && port == pkt->port))
        return;
    if (port >= 256) {
        b->beyond = 1;
        return;
    }
    b->count += !(b->ports[port / 64] & bit);
    b->ports[port / 64] |= bit;
    b->last = port;
}

MR_INLINE u32 broadcast_to(const struct broadcast *b, const struct mr_packet *pkt)
{
    int ingress = pkt->port < 256 && b->ports[pkt->port / 64] >> pkt->port % 64 & 1;

    if (b->beyond)
        return MR_NO_PORT;
    if (b->count == 0)
        return MR_TO_NOBODY;
    if (b->count == 1)
        return b->last;
    return !ingress && b->count == pkt->ports - 1 ? MR_TO_OTHERS : MR_NO_PORT;
}

#endif
