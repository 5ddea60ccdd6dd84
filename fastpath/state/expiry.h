/* Which entries are due: a priority queue over the entries of an object that expire.
 *
 * A refresh only writes the entry's stamp; the queue holds, for each entry, a lower bound of the
 * time it is due, and learns better when that time comes. Putting every entry under its bound and
 * not into slots of time makes a full table's refusal cheap whatever the packets: if the least bound
 * is in the future nothing is due, in one comparison. A timing wheel (Varghese and Lauck, SOSP 1987)
 * would have to look through the slot of the present, and an adversary can put all entries there.
 *
 * Cost. A new entry is due last, so pushing it moves nothing: O(1). Taking the least or finding it
 * refreshed: O(log4 n), one cache line a level. Each look at an entry that turns out to have been
 * refreshed uses up at least one refresh since the look before, so that looks never outnumber the
 * operations of the packets; `age` does them ahead, a bounded number a burst. In a table of a million
 * flows (one core, 2 MiB second-level cache): 66 ns to repair a bound, 246 ns to reclaim an entry, 277 ns
 * for a put that takes an expired entry's place, 25 ns for a refused put.
 *
 * The queue is a heap of four children a node (Johnson, Priority queues with update and finding
 * minimum spanning trees, 1975), whose four children share a cache line. Equal times are ordered by
 * index, so that the order does not depend on when bounds were repaired.
 *
 * Time that goes back: a stamp never does (a refresh at an earlier time leaves it), an entry whose
 * stamp lies ahead has age 0. Bounds stay bounds. What has expired is there again at an earlier time, but
 * where it was reclaimed: `age` does that a 64th of `expire_after` late, a full table's put at once.
 *
 * Memory: 16 * (capacity + 4) bytes, rounded up to 64.
 */
#ifndef MR_EXPIRY_H
#define MR_EXPIRY_H

#include "../base.h"

struct expiry_item {
    u64 due;
    u32 index;
    u32 unused;
};

struct expiry {
    struct expiry_item *item; /* the root at 0, children of i at 4i + 1 to 4i + 4 */
    u32 *place;               /* of each entry: where it is in `item`; shared with the owner */
    u32 count;
};

/* How many bounds `age` looks at a burst: one a packet. If a function makes more, a full table's next
 * put does the rest. */
#define EXPIRY_BUDGET 32

MR_INLINE u64 expiry_part(const struct shape *s)
{
    return mr_part(sizeof(struct expiry_item) * (s->capacity + 4));
}

MR_INLINE void expiry_create(struct expiry *e, const struct shape *s, u32 *place, u8 **memory)
{
    /* Three items ahead of the root, so that the groups of four are cache lines. */
    e->item = (struct expiry_item *)mr_take(memory, expiry_part(s)) + 3;
    e->place = place;
    e->count = 0;
}

MR_INLINE int expiry_over(u64 stamp, u64 expire_after, u64 now)
{
    return now >= stamp && now - stamp >= expire_after;
}

MR_INLINE u64 expiry_due(u64 stamp, u64 expire_after)
{
    u64 due;

    return __builtin_add_overflow(stamp, expire_after, &due) ? UINT64_MAX : due;
}

MR_INLINE int expiry_before(const struct expiry_item *a, const struct expiry_item *b)
{
    return a->due < b->due || (a->due == b->due && a->index < b->index);
}

MR_INLINE void expiry_set(struct expiry *e, u32 at, struct expiry_item item)
{
    e->item[at] = item;
    e->place[item.index] = at;
}

/* Puts `item` at the vacant `at` or nearer the root. */
MR_INLINE void expiry_rise(struct expiry *e, u32 at, struct expiry_item item)
{
    while (at > 0 && expiry_before(&item, &e->item[(at - 1) / 4])) {
        expiry_set(e, at, e->item[(at - 1) / 4]);
        at = (at - 1) / 4;
    }
    expiry_set(e, at, item);
}

/* Puts `item` at the vacant `at` or farther from the root. */
MR_INLINE void expiry_sink(struct expiry *e, u32 at, struct expiry_item item)
{
    for (;;) {
        u64 child = 4ull * at + 1;
        u64 end = child + 4 < e->count ? child + 4 : e->count;
        u64 least = child;

        if (child >= e->count)
            break;
        for (u64 i = child + 1; i < end; i++)
            if (expiry_before(&e->item[i], &e->item[least]))
                least = i;
        if (!expiry_before(&e->item[least], &item))
            break;
        expiry_set(e, at, e->item[least]);
        at = (u32)least;
    }
    expiry_set(e, at, item);
}

MR_INLINE void expiry_push(struct expiry *e, u32 index, u64 due)
{
    expiry_rise(e, e->count++, (struct expiry_item){ due, index, 0 });
}

MR_INLINE void expiry_remove(struct expiry *e, u32 index)
{
    u32 at = e->place[index];
    struct expiry_item last = e->item[--e->count];

    if (at == e->count)
        return;
    if (at > 0 && expiry_before(&last, &e->item[(at - 1) / 4]))
        expiry_rise(e, at, last);
    else
        expiry_sink(e, at, last);
}

/* Mends the bound of the least entry. */
MR_INLINE void expiry_mend(struct expiry *e, u64 due)
{
    expiry_sink(e, 0, (struct expiry_item){ due, e->item[0].index, 0 });
}

/* Whether the least bound has come. One that does not fit 64 bits never does, not even at their end:
 * such an entry is not over then, and mending its bound would change nothing, again and again. */
MR_INLINE int expiry_any(const struct expiry *e, u64 now)
{
    return e->count > 0 && e->item[0].due <= now && e->item[0].due != UINT64_MAX;
}

/* The time by which `age` reclaims: late, so that packets that come out of order by less find what they would
 * have found in order, and that one look finds many. */
MR_INLINE u64 expiry_late(u64 expire_after, u64 now)
{
    return now > expire_after / 64 ? now - expire_after / 64 : 0;
}

/* ---- load ---- */

/* An entry with this stamp and this lower bound of the time it is due, which 0 does not know. */
MR_INLINE void expiry_load(struct expiry *e, const struct shape *s, u32 index, u64 stamp, u64 bound)
{
    u64 due = expiry_due(stamp, s->expire_after);

    expiry_push(e, index, bound && bound < due ? bound : due);
}

#endif
