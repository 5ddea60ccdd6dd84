/* trace_printk: there is no trace pipe here, and a line a packet would drown everything else: nothing is
 * written. The result is the line's length where the format has no conversions, else the format's, which the
 * kernel's differs from: what would be printed is not handed in. -EINVAL for formats that the kernel does not take. */
#ifndef MR_HELPER_TRACE_PRINTK_H
#define MR_HELPER_TRACE_PRINTK_H

#include "format.h"

#define TRACE_PRINTK_VALUES 3u

MR_INLINE u64 helper_trace_printk(u8 *format, u64 bytes, struct mr_packet *pkt)
{
    (void)pkt;
    return format_line(format, bytes, NULL, TRACE_PRINTK_VALUES);
}

#endif
