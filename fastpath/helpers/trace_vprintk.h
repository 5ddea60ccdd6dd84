/* trace_vprintk: nothing is written, see trace_printk.h. The result is the line's length, but for formats that
 * read memory at an address: there it is the format's. At most 12 values of 8 bytes. */
#ifndef MR_HELPER_TRACE_VPRINTK_H
#define MR_HELPER_TRACE_VPRINTK_H

#include "format.h"

MR_INLINE u64 helper_trace_vprintk(u8 *format, u64 bytes, u8 *values, u64 values_bytes,
                                   struct mr_packet *pkt)
{
    (void)pkt;
    if (values_bytes % 8 || values_bytes > FORMAT_VALUES * 8 || (values_bytes && !values))
        return mr_errno(EINVAL);
    return format_line(format, bytes, values, values_bytes / 8);
}

#endif
