/* homes: the free numbers of an allocator, apart by where packets that carry them come home.
 *
 * Where a program runs on several workers, a packet that carries a leased number (the answer to a flow behind
 * a NAT) comes to the worker that the indirection table names for it. So that this is the worker with the lease, a lease
 * takes a number whose index in the table is that of the packet which asks for it (`home` of mr_packet). Both then share
 * one entry of the table and stay together when it is moved to another worker. `mr_config.homes` has the
 * index of each number.
 *
 * One list of free numbers an index, in the order in which they became free, threaded through the allocator's
 * `link`. Cost: O(1); `homes_unlink`, which control uses, looks through one list.
 *
 * Memory: mapped(4 * capacity + 2 * (4 * homes)), each rounded up to 64, beside the allocator's.
 */
#ifndef MR_HOMES_H
#define MR_HOMES_H

#include "../base.h"

#define HOMES_FREE 0x80000000u /* of a link: on a list; the rest names the next there */
#define HOMES_NIL 0x7fffffffu

struct homes {
    u32 *of;    /* of each number, the index under which packets that carry it come in */
    u32 *first; /* by index: the number that has been free the longest, or HOMES_NIL */
    u32 *last;
};

MR_INLINE u64 homes_part(const struct shape *s) { return mr_part(4 * s->capacity) + 2 * mr_part(4ull * s->homes); }

/* Puts a number behind those that are free under its index. */
MR_INLINE void homes_append(struct homes *h, u32 *link, u32 number)
{
    u32 at = h->of[number];

    link[number] = HOMES_FREE | HOMES_NIL;
    if (h->last[at] == HOMES_NIL)
        h->first[at] = number;
    else
        link[h->last[at]] = HOMES_FREE | number;
    h->last[at] = number;
}

/* Takes a number that is free from its list; `before` is the one in front of it there, or HOMES_NIL. */
MR_INLINE void homes_cut(struct homes *h, u32 *link, u32 before, u32 number)
{
    u32 at = h->of[number], next = link[number] & ~HOMES_FREE;

    if (before == HOMES_NIL)
        h->first[at] = next;
    else
        link[before] = HOMES_FREE | next;
    if (next == HOMES_NIL)
        h->last[at] = before;
}

/* The number that has been free the longest under an index, no longer on its list; or MR_NONE. */
MR_INLINE u32 homes_take(struct homes *h, const struct shape *s, u32 *link, u32 at)
{
    u32 number;

    if (mr_unlikely(at >= s->homes))
        return MR_NONE;
    number = h->first[at];
    if (number == HOMES_NIL)
        return MR_NONE;
    homes_cut(h, link, HOMES_NIL, number);
    return number;
}

/* Takes this number, which is free, from its list. */
static inline void homes_unlink(struct homes *h, u32 *link, u32 number)
{
    u32 before = HOMES_NIL;

    for (u32 i = h->first[h->of[number]]; i != number; i = link[i] & ~HOMES_FREE)
        before = i;
    homes_cut(h, link, before, number);
}

/* All numbers free, from the least upward. -EINVAL if nothing says where they come home, or one comes where
 * there is no index. */
static inline int homes_create(struct homes *h, const struct shape *s, const struct mr_config *config, u32 *link)
{
    const u32 *table = config->homes ? config->homes[s->object] : NULL;
    u8 *memory;

    if (!table)
        return -EINVAL;
    for (u64 i = 0; i < s->capacity; i++)
        if (table[i] >= s->homes)
            return -EINVAL;
    memory = mr_map_memory(homes_part(s));
    if (!memory)
        return -ENOMEM;
    h->of = (u32 *)mr_take(&memory, 4 * s->capacity);
    h->first = (u32 *)mr_take(&memory, 4ull * s->homes);
    h->last = (u32 *)mr_take(&memory, 4ull * s->homes);
    memcpy(h->of, table, 4 * s->capacity);
    for (u32 i = 0; i < s->homes; i++)
        h->first[i] = h->last[i] = HOMES_NIL;
    for (u32 i = 0; i < s->capacity; i++)
        homes_append(h, link, i);
    return 0;
}

static inline void homes_destroy(struct homes *h, const struct shape *s) { mr_unmap_memory(h->of, homes_part(s)); }

#endif
