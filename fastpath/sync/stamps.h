/* stamps: when each core last refreshed each entry of an object that cores share, and how often it found none
 * free, so that neither a refresh nor a refusal writes what others read (Pereira et al., NSDI 2024, section 4,
 * Lock-based rejuvenation).
 *
 * The entry itself has a stamp, too, which only writers move. The latest of them all is the entry's. Who has
 * all lines of the lock (lock.h) can tell it, `stamps_join`. A reader looks at the entry's stamp and its own
 * core's: if these keep the entry alive it is, as the latest is no earlier; if not, it becomes a writer. It
 * does not look at the others': it would see a refresh or not, as the cores happen to run.
 *
 * Memory: bytes = mapped(cores * part(8 * (places + 1))), part and mapped as in base.h; places: the capacity of an
 * object that expires, else 0.
 */
#ifndef MR_SYNC_STAMPS_H
#define MR_SYNC_STAMPS_H

#include "undo.h"

/* Instead of a value, or of a number: only a writer can tell, or do it. */
#define MR_RESTART ((u8 *)(uintptr_t)1)
#define MR_RESTART_NUMBER (1ull << 63)

struct stamps {
    u8 *data;
    u64 stride; /* from one core's to the next */
    u64 places; /* stamps of each; one more word counts refusals */
    u32 cores;
};

MR_INLINE u64 stamps_bytes(u64 places, u32 cores) { return mr_mapped_bytes(cores * mr_part(8 * (places + 1))); }

static inline int stamps_create(struct stamps *t, u64 places, u32 cores)
{
    t->stride = mr_part(8 * (places + 1));
    t->places = places;
    t->cores = cores;
    t->data = (u8 *)mr_map_memory(cores * t->stride);
    return t->data ? 0 : -ENOMEM;
}

static inline void stamps_destroy(struct stamps *t)
{
    mr_unmap_memory(t->data, t->cores * t->stride);
    *t = (struct stamps){0};
}

MR_INLINE u64 *stamps_at(const struct stamps *t, u32 core, u64 place)
{
    return (u64 *)(t->data + core * t->stride) + place;
}

/* The latest that a reader may know. */
MR_INLINE u64 stamps_known(const struct stamps *t, u32 core, u64 place, const u64 *stamp)
{
    u64 mine = *stamps_at(t, core, place);

    return mine > *stamp ? mine : *stamp;
}

/* A reader's refresh: 1 if only a writer can do it. Should the reader run again as a writer, its refresh is
 * undone before anybody else can see it: it might not come to it any more, and who is a writer before it must
 * not find alive what it alone has kept. */
MR_INLINE int stamps_touch(const struct stamps *t, u64 place, struct mr_packet *pkt)
{
    u64 *mine = stamps_at(t, pkt->core, place);

    if (pkt->time <= *mine)
        return 0;
    if (pkt->undo && undo_keep((struct undo *)pkt->undo, (const u8 *)mine, sizeof(*mine)))
        return 1;
    *mine = pkt->time;
    return 0;
}

/* Counts that a reader found no entry free: 1 if only a writer can do it. Like its refresh, it is undone if it
 * runs again. */
MR_INLINE int stamps_refuse(const struct stamps *t, struct mr_packet *pkt)
{
    u64 *mine = stamps_at(t, pkt->core, t->places);

    if (pkt->undo && undo_keep((struct undo *)pkt->undo, (const u8 *)mine, sizeof(*mine)))
        return 1;
    ++*mine;
    return 0;
}

/* How often readers found none free; 0 of an object that is not shared. */
MR_INLINE u64 stamps_refused(const struct stamps *t)
{
    u64 sum = 0;

    for (u32 i = 0; i < t->cores; i++)
        sum += *stamps_at(t, i, t->places);
    return sum;
}

/* Makes the entry's own stamp the latest. Writers only. */
MR_INLINE void stamps_join(const struct stamps *t, u64 place, u64 *stamp)
{
    for (u32 i = 0; i < t->cores; i++)
        if (*stamps_at(t, i, place) > *stamp)
            *stamp = *stamps_at(t, i, place);
}

/* Whoever is at this place from now on has not been refreshed. Writers only. */
MR_INLINE void stamps_forget(const struct stamps *t, u64 place)
{
    for (u32 i = 0; i < t->cores; i++)
        *stamps_at(t, i, place) = 0;
}

/* No entry has been refreshed, and no reader was refused. */
static inline void stamps_clear(const struct stamps *t)
{
    if (t->data)
        memset(t->data, 0, t->cores * t->stride);
}

#endif
