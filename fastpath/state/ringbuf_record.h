/* What lies before a record of a ring buffer, so that a record can be given back by its pointer alone. */
#ifndef MR_RINGBUF_RECORD_H
#define MR_RINGBUF_RECORD_H

#include "../base.h"

#define RINGBUF_HEADER 8
#define RINGBUF_BUSY 0x80000000u    /* reserved and not given back */
#define RINGBUF_DISCARD 0x40000000u /* not to be handed to the host */

MR_INLINE u32 *ringbuf_header(u8 *record) { return (u32 *)(record - RINGBUF_HEADER); }

MR_INLINE void ringbuf_finish(u8 *record, u32 how)
{
    u32 *header = ringbuf_header(record);

    *header = (*header & ~RINGBUF_BUSY) | how;
}

#endif
