/* trace_vprintk: nothing is written, see trace_printk.h. At most 12 values of 8 bytes. */
#ifndef MR_HELPER_TRACE_VPRINTK_H
#define MR_HELPER_TRACE_VPRINTK_H

#include "../base.h"

MR_INLINE u64 helper_trace_vprintk(u8 *format, u64 bytes, u8 *values, u64 values_bytes,
                                   struct mr_packet *pkt)
{
    (void)pkt;
    if (values_bytes % 8 || values_bytes > 12 * 8 || (values_bytes && !values))
        return mr_errno(EINVAL);
    if (bytes == 0 || format[bytes - 1] != 0)
        return mr_errno(EINVAL);
    return bytes - 1;
}

#endif
