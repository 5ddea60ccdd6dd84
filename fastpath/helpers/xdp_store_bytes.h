/* xdp_store_bytes: copies `length` bytes into the frame at `offset`. -EFAULT if either is above 65535,
 * -EINVAL beyond the frame's end; nothing is written then. */
#ifndef MR_HELPER_XDP_STORE_BYTES_H
#define MR_HELPER_XDP_STORE_BYTES_H

#include "../base.h"

MR_INLINE u64 helper_xdp_store_bytes(u64 offset, u8 *buffer, u64 length, struct mr_packet *pkt)
{
    u64 at = (u32)offset, bytes = (u32)length;

    if (at > 0xffff || bytes > 0xffff)
        return mr_errno(EFAULT);
    if (at + bytes > (u64)(pkt->end - pkt->data))
        return mr_errno(EINVAL);
    memmove(pkt->data + at, buffer, bytes);
    return 0;
}

#endif
