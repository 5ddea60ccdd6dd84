/* strtol: digits.h, and the sign. `*result` is 0 after an error. */
#ifndef MR_HELPER_STRTOL_H
#define MR_HELPER_STRTOL_H

#include "digits.h"

MR_INLINE u64 helper_strtol(u8 *text, u64 length, u64 flags, u8 *result, struct mr_packet *pkt)
{
    struct digits d;

    (void)pkt;
    mr_store64(result, 0);
    d = digits_read(text, length, flags);
    if ((s64)d.taken < 0)
        return d.taken;
    if (d.negative ? d.value > 1ull << 63 : d.value >> 63)
        return mr_errno(ERANGE);
    mr_store64(result, d.negative ? -d.value : d.value);
    return d.taken;
}

#endif
