/* xdp_load_bytes: copies `length` bytes of the frame from `offset`. -EFAULT if either is above 65535,
 * -EINVAL beyond the frame's end; the buffer is zero then, so that it is initialised in any case. */
#ifndef MR_HELPER_XDP_LOAD_BYTES_H
#define MR_HELPER_XDP_LOAD_BYTES_H

#include "../base.h"

MR_INLINE u64 helper_xdp_load_bytes(u64 offset, u8 *buffer, u64 length, struct mr_packet *pkt)
{
    u64 from = (u32)offset, bytes = (u32)length;
    u64 error = 0;

    if (from > 0xffff || bytes > 0xffff)
        error = mr_errno(EFAULT);
    else if (from + bytes > (u64)(pkt->end - pkt->data))
        error = mr_errno(EINVAL);
    if (error)
        memset(buffer, 0, length);
    else
        memmove(buffer, pkt->data + from, bytes); /* the buffer may be packet bytes, too */
    return error;
}

#endif
