/* notes: the places of an object that have changed since somebody took them, for a copy of the object elsewhere (`changes` of abi.h).
 *
 * Each place is noted at most once until it is taken, so that the list never overflows, and who takes them late gets the latest
 * content of each. A refresh is noted only where it crosses a sixteenth of the time after which entries expire (at most: a power of two of
 * ns), so that an entry's stamp in a copy is behind by less than that, and a packet that only refreshes costs a comparison.
 *
 * Cost: a byte and, once until it is taken, 4 bytes of a list. Memory: mapped(round_up(capacity, 64) + round_up(4 * capacity, 64)).
 * Only of shapes with `noted`; of others nothing is left of this.
 */
#ifndef MR_NOTES_H
#define MR_NOTES_H

#include "../base.h"

#define NOTES_CHANGED 1u
#define NOTES_FRESH 2u /* another key has the place than when it was taken last */

struct notes {
    u8 *mark;   /* by place */
    u32 *place; /* a ring of those that are marked, in the order in which they were */
    u32 first, count;
};

MR_INLINE u64 notes_part(const struct shape *s) { return mr_part(s->capacity) + mr_part(4 * s->capacity); }

static inline int notes_create(struct notes *n, const struct shape *s)
{
    u8 *memory;

    *n = (struct notes){0};
    if (!s->noted)
        return 0;
    memory = mr_map_memory(notes_part(s));
    if (!memory)
        return -ENOMEM;
    n->mark = mr_take(&memory, s->capacity);
    n->place = (u32 *)mr_take(&memory, 4 * s->capacity);
    return 0;
}

static inline void notes_destroy(struct notes *n, const struct shape *s)
{
    if (s->noted)
        mr_unmap_memory(n->mark, notes_part(s));
    *n = (struct notes){0};
}

MR_INLINE void notes_add(struct notes *n, const struct shape *s, u32 place, u32 fresh)
{
    u32 before;
    u64 at;

    if (!s->noted)
        return;
    before = n->mark[place];
    if (mr_likely(before & NOTES_CHANGED) && !fresh)
        return;
    n->mark[place] = (u8)(before | NOTES_CHANGED | fresh);
    if (before & NOTES_CHANGED)
        return;
    at = (u64)n->first + n->count;
    n->place[at < s->capacity ? at : at - s->capacity] = place;
    n->count++;
}

/* A refresh at `now` of what was last refreshed at `before`. */
MR_INLINE void notes_refresh(struct notes *n, const struct shape *s, u32 place, u64 before, u64 now)
{
    if (s->noted && mr_unlikely((before ^ now) >> (63 - __builtin_clzll(s->expire_after / 16 | 1))))
        notes_add(n, s, place, 0);
}

/* Takes the next place; whether its key may be another one than when it was taken last. There is one. */
MR_INLINE u32 notes_take(struct notes *n, const struct shape *s, int *fresh)
{
    u32 place = n->place[n->first];

    n->first = n->first + 1 == s->capacity ? 0 : n->first + 1;
    n->count--;
    *fresh = (n->mark[place] & NOTES_FRESH) != 0;
    n->mark[place] = 0;
    return place;
}

/* How many places ahead of the one that is told are fetched: a row takes some tens of ns, a line from memory about a hundred. */
#define NOTES_AHEAD 8

/* Bytes of an entry of so many that are fetched ahead. */
MR_INLINE u64 notes_touched(u64 stride) { return stride <= 256 ? stride : 256; }

/* The place that is told NOTES_AHEAD places later. There is one. */
MR_INLINE u32 notes_ahead(const struct notes *n, const struct shape *s)
{
    u64 at = (u64)n->first + NOTES_AHEAD;
    u32 place = n->place[at < s->capacity ? at : at - s->capacity];

    mr_prefetch(&n->mark[place]);
    return place;
}

/* KIND_changes, by KIND_noted_piece, which makes the piece of a place, 0 where there is nothing, and KIND_noted_prefetch. */
#define NOTES_CHANGES(kind)                                                                                            \
    static inline u64 kind##_changes(struct kind *k, const struct shape *s, u64 from, u64 to, u64 most,               \
                                     mr_saved_fn *fn, void *context)                                                   \
    {                                                                                                                  \
        to = to < s->capacity ? to : s->capacity;                                                                      \
        for (u64 i = from; i < to; i++)                                                                                \
            notes_add(&k->notes, s, (u32)i, NOTES_FRESH);                                                              \
        for (; most > 0 && k->notes.count > 0; most--) {                                                               \
            struct mr_saved piece;                                                                                     \
            int fresh;                                                                                                 \
            u32 place;                                                                                                 \
                                                                                                                       \
            if (k->notes.count > NOTES_AHEAD)                                                                          \
                kind##_noted_prefetch(k, s, notes_ahead(&k->notes, s));                                                \
            place = notes_take(&k->notes, s, &fresh);                                                                  \
            if (!kind##_noted_piece(k, s, place, &piece))                                                              \
                piece = (struct mr_saved){ .what = MR_SAVED_FREE, .place = place };                                    \
            piece.length = !fresh;                                                                                     \
            fn(context, &piece);                                                                                       \
        }                                                                                                              \
        return k->notes.count;                                                                                         \
    }

#endif
