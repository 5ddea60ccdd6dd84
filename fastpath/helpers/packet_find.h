/* packet_find: the offset of the first occurrence of `size` bytes in the frame, from `offset` on; -1: there is none. */
#ifndef MR_HELPER_PACKET_FIND_H
#define MR_HELPER_PACKET_FIND_H

#include "../base.h"

MR_INLINE u64 helper_packet_find(u64 offset, u8 *bytes, u64 size, struct mr_packet *pkt)
{
    u64 length = (u64)(pkt->end - pkt->data), wanted = (u32)size;

    while (offset <= length && wanted <= length - offset) {
        /* The first byte is looked for by memchr, which takes 32 bytes at a time. */
        const u8 *from = pkt->data + offset;
        const u8 *at = (const u8 *)memchr(from, bytes[0], length - offset - wanted + 1);

        if (!at)
            break;
        if (memcmp(at, bytes, wanted) == 0)
            return (u64)(at - pkt->data);
        offset = (u64)(at - pkt->data) + 1;
    }
    return UINT64_MAX;
}

#endif
