/* redirect: names the port that the verdict XDP_REDIRECT forwards to; interface index n is port n - 1.
 * Flags are the kernel's: none are defined for XDP, others make the result XDP_ABORTED. */
#ifndef MR_HELPER_REDIRECT_H
#define MR_HELPER_REDIRECT_H

#include "../context.h"

MR_INLINE u64 helper_redirect(u64 ifindex, u64 flags, struct mr_packet *pkt)
{
    if (flags)
        return 0;
    pkt->redirect = (u32)ifindex - 1 < MR_TO_FIRST ? (u32)ifindex - 1 : MR_NO_PORT;
    return 4;
}

#endif
