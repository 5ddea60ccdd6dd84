/* allocator: what a reader may do to leases that workers share (lock.h, stamps.h). Each does what
 * its namesake in state/allocator.h does, or nothing at all, and gives MR_RESTART.
 */
#ifndef MR_SYNC_ALLOCATOR_H
#define MR_SYNC_ALLOCATOR_H

#include "../state/allocator.h"

MR_INLINE u8 *allocator_reader_find(struct allocator *a, const struct shape *s, u64 number, int refresh,
                                    struct mr_packet *pkt)
{
    u64 index = number - s->first;

    if (index >= s->capacity || a->link[index] & ALLOCATOR_FREE)
        return NULL;
    if (s->expire_after) {
        u64 latest = stamps_known(&a->stamps, pkt->core, index, allocator_stamp(a, s, (u32)index));

        if (mr_unlikely(expiry_over(latest, s->expire_after, pkt->time)))
            return MR_RESTART;
        if (refresh && mr_unlikely(stamps_touch(&a->stamps, index, pkt)))
            return MR_RESTART;
    }
    return allocator_entry(a, s, (u32)index) + 8;
}

MR_INLINE u8 *allocator_reader_allocator_get(struct allocator *a, const struct shape *s, u64 number,
                                             struct mr_packet *pkt)
{
    return allocator_reader_find(a, s, number, 0, pkt);
}

MR_INLINE u8 *allocator_reader_allocator_refresh(struct allocator *a, const struct shape *s, u64 number,
                                                 struct mr_packet *pkt)
{
    return allocator_reader_find(a, s, number, 1, pkt);
}

#endif
