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

/* allocator_refresh of numbers that the worker has for itself; as hash_kept_map_refresh. */
MR_INLINE u8 *allocator_kept_allocator_refresh(struct allocator *a, const struct shape *s, u64 number,
                                               struct mr_packet *pkt)
{
    u8 *entry = allocator_find(a, s, number, pkt->time);

    if (!entry)
        return NULL;
    if (s->expire_after && undo_keep((struct undo *)pkt->undo, entry, 8))
        return MR_RESTART;
    return allocator_allocator_refresh(a, s, number, pkt);
}

/* Where every number is leased beyond this packet's time nobody gets one. Bounds of the queue are no later than what
 * they bound, and what readers refresh only moves that on. */
MR_INLINE u64 allocator_reader_allocator_lease(struct allocator *a, const struct shape *s, const u8 *value,
                                               struct mr_packet *pkt)
{
    (void)value;
    if (a->fresh < s->capacity || a->first != ALLOCATOR_NIL ||
        (s->expire_after && expiry_any(&a->expiry, pkt->time)) || stamps_refuse(&a->stamps, pkt))
        return MR_RESTART_NUMBER;
    return UINT64_MAX;
}

#endif
