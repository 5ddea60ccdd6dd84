/* xskmap: sockets that take frames. Serves BPF's XSKMAP.
 *
 * Contract. `redirect_map` (net/xdp/xskmap.c xsk_map_redirect): XDP_ABORTED for flags above 3, the flags
 * if no entry is at the index, else XDP_REDIRECT, and the frame is consumed: whoever owns the socket has
 * it. `map_lookup_elem` tells whether an entry is there. Entries are set by the host: any number but 0.
 */
#ifndef MR_XSKMAP_H
#define MR_XSKMAP_H

#include "targets.h"

TARGETS_KIND(xskmap)
TARGETS_LOOKUP(xskmap)

MR_INLINE u64 xskmap_redirect_map(struct xskmap *m, const struct shape *s, u64 index, u64 flags,
                                 struct mr_packet *pkt)
{
    if (flags & ~(u64)TARGETS_ACTION)
        return MR_XDP_ABORTED;
    return targets_result(pkt, targets_find(&m->targets, s, index) != NULL, flags, MR_TO_USER);
}

#endif
