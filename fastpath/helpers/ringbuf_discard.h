/* ringbuf_discard: gives a reserved record back unseen. Flags concern wakeups, which mean nothing here. */
#ifndef MR_HELPER_RINGBUF_DISCARD_H
#define MR_HELPER_RINGBUF_DISCARD_H

#include "../state/ringbuf_record.h"

MR_INLINE u64 helper_ringbuf_discard(u8 *record, u64 flags, struct mr_packet *pkt)
{
    (void)flags;
    (void)pkt;
    ringbuf_finish(record, RINGBUF_DISCARD);
    return 0;
}

#endif
