/* strtoul: digits.h; a minus sign is -EINVAL. `*result` is 0 after an error. */
#ifndef MR_HELPER_STRTOUL_H
#define MR_HELPER_STRTOUL_H

#include "digits.h"

MR_INLINE u64 helper_strtoul(u8 *text, u64 length, u64 flags, u8 *result, struct mr_packet *pkt)
{
    struct digits d;

    (void)pkt;
    mr_store64(result, 0);
    d = digits_read(text, length, flags);
    if ((s64)d.taken < 0)
        return d.taken;
    if (d.negative)
        return mr_errno(EINVAL);
    mr_store64(result, d.value);
    return d.taken;
}

#endif
