/* cpumap: CPUs that go on with a frame. Serves BPF's CPUMAP.
 *
 * Contract. `redirect_map` (kernel/bpf/cpumap.c cpu_map_redirect): XDP_ABORTED for flags above 3, the
 * flags if no entry is at the index, else XDP_REDIRECT, and the frame goes to the host's network stack,
 * as a frame that another CPU takes up does. A second program on that CPU is not run. Entries are set
 * by the host: the queue's size, not 0.
 */
#ifndef MR_CPUMAP_H
#define MR_CPUMAP_H

#include "targets.h"

TARGETS_KIND(cpumap)

MR_INLINE u64 cpumap_redirect_map(struct cpumap *m, const struct shape *s, u64 index, u64 flags,
                                 struct mr_packet *pkt)
{
    if (flags & ~(u64)TARGETS_ACTION)
        return MR_XDP_ABORTED;
    return targets_result(pkt, targets_find(&m->targets, s, index) != NULL, flags, MR_TO_HOST);
}

#endif
