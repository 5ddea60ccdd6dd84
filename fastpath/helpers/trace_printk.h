/* trace_printk: there is no trace pipe here, and a line a packet would drown everything else: nothing is
 * written. The result is the format's length, -EINVAL if it does not end in a zero byte; programs
 * that use the number of bytes printed for more than its sign get another one than in the kernel. */
#ifndef MR_HELPER_TRACE_PRINTK_H
#define MR_HELPER_TRACE_PRINTK_H

#include "../base.h"

MR_INLINE u64 helper_trace_printk(u8 *format, u64 bytes, struct mr_packet *pkt)
{
    (void)pkt;
    if (bytes == 0 || format[bytes - 1] != 0)
        return mr_errno(EINVAL);
    return bytes - 1;
}

#endif
