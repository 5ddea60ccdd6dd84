/* What lies before a record of a ring buffer, so that a record can be given back by its pointer alone. */
#ifndef MR_RINGBUF_RECORD_H
#define MR_RINGBUF_RECORD_H

#include "../base.h"

#define RINGBUF_HEADER 8
#define RINGBUF_BUSY 0x80000000u    /* reserved and not given back */
#define RINGBUF_DISCARD 0x40000000u /* not to be handed to the host */

/* To a program the header is what lies before its record. */
MR_UNWATCHED u32 ringbuf_header(const u8 *record) { return *(const u32 *)(record - RINGBUF_HEADER); }

MR_UNWATCHED void ringbuf_set_header(u8 *record, u32 header) { *(u32 *)(record - RINGBUF_HEADER) = header; }

MR_INLINE void ringbuf_finish(u8 *record, u32 how)
{
    ringbuf_set_header(record, (ringbuf_header(record) & ~RINGBUF_BUSY) | how);
}

#endif
