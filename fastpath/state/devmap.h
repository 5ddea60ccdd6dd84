/* devmap: interfaces by an index. Serves BPF's DEVMAP.
 *
 * Contract. `redirect_map` (kernel/bpf/devmap.c dev_map_redirect): XDP_ABORTED for flags but the verdict,
 * BPF_F_BROADCAST and BPF_F_EXCLUDE_INGRESS; the verdict if nothing is at the index; else XDP_REDIRECT, and
 * the frame goes to the port of the interface: interface index n is port n - 1. `map_lookup_elem` gives
 * the value or null. Broadcasts: broadcast.h. Entries are set by the host; an 8-byte value must name no
 * program.
 */
#ifndef MR_DEVMAP_H
#define MR_DEVMAP_H

#include "broadcast.h"

TARGETS_KIND(devmap)
TARGETS_LOOKUP(devmap)

MR_INLINE u64 devmap_redirect_map(struct devmap *m, const struct shape *s, u64 index, u64 flags,
                                  struct mr_packet *pkt)
{
    const u8 *target;

    if (flags & ~(u64)(TARGETS_ACTION | TARGETS_BROADCAST | TARGETS_NOT_INGRESS))
        return MR_XDP_ABORTED;
    if (flags & TARGETS_BROADCAST) {
        struct broadcast b = { 0 };

        for (u64 i = 0; i < s->capacity; i++) {
            target = targets_find(&m->targets, s, i);
            if (target)
                broadcast_add(&b, pkt, flags, targets_port(mr_load32(target)));
        }
        return targets_result(pkt, 1, flags, broadcast_to(&b, pkt));
    }
    target = targets_find(&m->targets, s, index);
    return targets_result(pkt, target != NULL, flags, target ? targets_port(mr_load32(target)) : 0);
}

#endif
