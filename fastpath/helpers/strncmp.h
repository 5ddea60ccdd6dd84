/* strncmp: -1, 0 or 1 by the first byte that differs, of at most `size`, up to the first zero byte. */
#ifndef MR_HELPER_STRNCMP_H
#define MR_HELPER_STRNCMP_H

#include "../base.h"

MR_INLINE u64 helper_strncmp(u8 *bytes, u64 size, u8 *text, struct mr_packet *pkt)
{
    (void)pkt;
    for (u64 i = 0; i < size; i++) {
        if (bytes[i] != text[i])
            return bytes[i] < text[i] ? (u64)-1 : 1;
        if (bytes[i] == 0)
            break;
    }
    return 0;
}

#endif
