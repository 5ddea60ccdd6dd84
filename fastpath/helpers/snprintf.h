/* snprintf: the length of the text and its zero byte, all of it, of which as much is written as fits; -EINVAL
 * for values that are no whole words or more than 12, and for formats that the kernel does not take. */
#ifndef MR_HELPER_SNPRINTF_H
#define MR_HELPER_SNPRINTF_H

#include "format.h"

MR_INLINE u64 helper_snprintf(u8 *to, u64 size, u8 *format, u8 *values, u64 bytes, struct mr_packet *pkt)
{
    (void)pkt;
    if (bytes % 8 || bytes > FORMAT_VALUES * 8 || (bytes && !values) || !format_fits(format, bytes / 8))
        return mr_errno(EINVAL);
    return format_write(to, size, format, values) + 1;
}

#endif
