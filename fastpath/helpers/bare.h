/* Headroom that a packet takes for the first time holds what an earlier packet of the same buffer left
 * there. Nobody may see that, and results must not depend on it: it becomes zeros, as in a fresh
 * buffer of the kernel's. It is done here rather than where packets come in, because few do this, and
 * to touch the headroom of all of them would cost four cache lines a packet. */
#ifndef MR_HELPER_BARE_H
#define MR_HELPER_BARE_H

#include "../base.h"

MR_INLINE void helper_bare(struct mr_packet *pkt, u8 *to)
{
    if (to >= pkt->bared)
        return;
    memset(to, 0, (u64)(pkt->bared - to));
    pkt->bared = to;
}

#endif
