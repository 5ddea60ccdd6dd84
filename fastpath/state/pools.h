/* pools: the entries of an object that cores share, each in the pool of one core, so that taking a free entry, filing
 * a new one's expiry and giving one back touch memory of that core.
 *
 * An entry belongs to one pool whether it is free or not. A core takes entries of its own pool; one that another core
 * gives back goes onto a stack of the owner's (`returned`), which only the owner empties, so that it needs no counter
 * against reuse. The owner's expiry heap names exactly the entries of its pool that are filed.
 *
 * Rest. A core that validated its packet before an entry was given back may still write its own stamp of that entry
 * (sync/stamps.h) afterwards. So an entry that was given back rests until the line (sync/lock.h) of every other core has
 * passed: for each line the ticket that the next comer gets is read when the rest begins, and the rest is over once
 * that ticket is served. It is read by an atomic addition of 0: a core whose ticket is later acquires what
 * was written before the rest began and does not find the entry any more; of one whose ticket is earlier the rest waits for
 * the end. One batch rests at a time, so that the cost is one atomic operation a core and batch.
 *
 * Where `queues` is set a pool's free entries are a queue and not a stack: the one that has been free the longest is taken first, batch by
 * batch in the order in which they were given back.
 *
 * `pools_lend` moves half of the fullest pool's free entries to a core that has none. Its caller holds all lines, which
 * ends every rest.
 *
 * The heaps of expiry are segments of one array, each as long as its core owns entries: where entries change hands, who has all lines
 * moves what lies between the two.
 *
 * Memory, in one mapping, each part rounded up to 64 bytes: 128 * cores, 4 * cores * cores, 4 * capacity (links),
 * 2 * capacity (owners); and for objects that expire 4 * capacity (places) and 16 * (capacity + 8 * cores).
 */
#ifndef MR_POOLS_H
#define MR_POOLS_H

#include "../sync/words.h"
#include "expiry.h"

#define POOLS_NIL 0xffffffffu

struct pool {
    u32 free;     /* list of entries that can be taken */
    u32 last;     /* its last one, of a queue that is not empty */
    u32 frees;    /* its length */
    u32 fresh;    /* list of entries that were given back and do not rest yet */
    u32 waiting;  /* list of the batch that rests */
    u32 owned;    /* entries whose owner this core is */
    u32 *passed;  /* of each line: the ticket whose service ends the rest of this batch */
    struct expiry expiry;
    u32 returned __attribute__((aligned(64))); /* stack of entries that other cores gave back */
} __attribute__((aligned(64)));

struct pools {
    struct pool *pool; /* one a core */
    u32 *link;         /* of an entry that is on a list or a stack: the next one there, or POOLS_NIL */
    u16 *owner;        /* of each entry; changes only while one core holds all lines */
    struct expiry_item *items; /* of all heaps, if there are any */
    u64 bytes;
    u32 cores;
    u32 expires;
    u32 queues;
};

MR_INLINE u64 pools_items(const struct shape *s, u32 cores)
{
    return mr_part(sizeof(struct expiry_item) * (s->capacity + 8ull * cores));
}

MR_INLINE u64 pools_part(const struct shape *s, u32 cores)
{
    u64 bytes = mr_part(sizeof(struct pool) * cores) + mr_part(4ull * cores * cores) + mr_part(4 * s->capacity) +
                mr_part(2 * s->capacity);

    return s->expire_after ? bytes + mr_part(4 * s->capacity) + pools_items(s, cores) : bytes;
}

/* What the heap of so many entries takes: three items ahead of the root, so that groups of four are cache lines (expiry.h). */
MR_INLINE u32 pools_segment(u32 owned) { return (owned + 3 + 3) & ~3u; }

/* The heap of a core begins where those before it end. */
MR_INLINE struct expiry_item *pools_heap(const struct pools *p, u32 core)
{
    struct expiry_item *at = p->items;

    for (u32 c = 0; c < core; c++)
        at += pools_segment(p->pool[c].owned);
    return at + 3;
}

MR_INLINE void pools_push(struct pools *p, u32 *list, u32 index)
{
    p->link[index] = *list;
    *list = index;
}

MR_INLINE u32 pools_pop(struct pools *p, u32 *list)
{
    u32 index = *list;

    if (index != POOLS_NIL)
        *list = p->link[index];
    return index;
}

/* Gives back an entry that was taken and never published. */
MR_INLINE void pools_untake(struct pools *p, u32 core, u32 index)
{
    if (p->pool[core].free == POOLS_NIL)
        p->pool[core].last = index;
    pools_push(p, &p->pool[core].free, index);
    p->pool[core].frees++;
}

/* Puts an entry behind those that are free. */
MR_INLINE void pools_append(struct pools *p, struct pool *own, u32 index)
{
    p->link[index] = POOLS_NIL;
    if (own->free == POOLS_NIL)
        own->free = index;
    else
        p->link[own->last] = index;
    own->last = index;
    own->frees++;
}

/* Each core has an equal part of the entries, successive ones; none is free or filed. */
static inline void pools_empty(struct pools *p, const struct shape *s)
{
    for (u32 c = 0; c < p->cores; c++) {
        struct pool *own = &p->pool[c];

        own->free = own->fresh = own->waiting = own->returned = POOLS_NIL;
        own->frees = own->expiry.count = own->owned = 0;
    }
    for (u64 i = 0; i < s->capacity; i++) {
        p->owner[i] = (u16)(i * p->cores / s->capacity);
        p->pool[p->owner[i]].owned++;
    }
    for (u32 c = 0; c < p->cores && p->expires; c++)
        p->pool[c].expiry.item = pools_heap(p, c);
}

/* All entries are free. */
static inline int pools_create(struct pools *p, const struct shape *s, u32 cores)
{
    u8 *memory;
    u32 *passed, *place = NULL;

    *p = (struct pools){0};
    if (cores == 0 || s->capacity == 0)
        return -EINVAL;
    if (cores > LOCK_CORES_MAX || s->capacity > MR_CAPACITY_MAX)
        return -E2BIG;
    p->bytes = pools_part(s, cores);
    memory = (u8 *)mr_map_memory(p->bytes);
    if (!memory)
        return -ENOMEM;
    p->cores = cores;
    p->expires = s->expire_after != 0;
    p->pool = (struct pool *)mr_take(&memory, sizeof(struct pool) * cores);
    passed = (u32 *)mr_take(&memory, 4ull * cores * cores);
    p->link = (u32 *)mr_take(&memory, 4 * s->capacity);
    p->owner = (u16 *)mr_take(&memory, 2 * s->capacity);
    if (p->expires) {
        place = (u32 *)mr_take(&memory, 4 * s->capacity);
        p->items = (struct expiry_item *)mr_take(&memory, pools_items(s, cores));
    }
    for (u32 c = 0; c < cores; c++) {
        p->pool[c].passed = passed + (u64)c * cores;
        p->pool[c].expiry.place = place;
    }
    pools_empty(p, s);
    for (u64 i = s->capacity; i-- > 0;)
        pools_untake(p, p->owner[i], (u32)i);
    return 0;
}

static inline void pools_destroy(struct pools *p)
{
    mr_unmap_memory(p->pool, p->bytes);
    *p = (struct pools){0};
}

/* ---- rest ---- */

MR_INLINE void pools_ready(struct pools *p, struct pool *own, u32 *list)
{
    u32 turned = POOLS_NIL;

    if (p->queues) {
        for (u32 i; (i = pools_pop(p, list)) != POOLS_NIL;)
            pools_push(p, &turned, i);
        for (u32 i; (i = pools_pop(p, &turned)) != POOLS_NIL;)
            pools_append(p, own, i);
        return;
    }
    for (u32 i; (i = pools_pop(p, list)) != POOLS_NIL; own->frees++) {
        MR_POINT();
        pools_push(p, &own->free, i);
    }
}

/* What other cores gave back of this pool no longer expires. */
MR_INLINE void pools_receive(struct pools *p, struct pool *own)
{
    u32 list;

    MR_POINT();
    if (__atomic_load_n(&own->returned, __ATOMIC_RELAXED) == POOLS_NIL)
        return;
    MR_POINT();
    list = __atomic_exchange_n(&own->returned, POOLS_NIL, __ATOMIC_ACQUIRE);
    for (u32 i; (i = pools_pop(p, &list)) != POOLS_NIL;) {
        if (p->expires)
            expiry_remove(&own->expiry, i);
        pools_push(p, &own->fresh, i);
    }
}

MR_INLINE int pools_rested(const struct pools *p, const struct lock *k, u32 core)
{
    const struct pool *own = &p->pool[core];

    for (u32 c = 0; c < p->cores; c++) {
        if (c == core)
            continue;
        MR_POINT();
        if ((s32)(__atomic_load_n(&k->line[c].serving, __ATOMIC_ACQUIRE) - own->passed[c]) < 0)
            return 0;
    }
    return 1;
}

/* Ends the rest of a batch if it is over, and begins that of the next one. By the owner. */
MR_OUTLINE void pools_settle(struct pools *p, struct lock *k, u32 core)
{
    struct pool *own = &p->pool[core];

    pools_receive(p, own);
    if (own->waiting != POOLS_NIL && pools_rested(p, k, core))
        pools_ready(p, own, &own->waiting);
    if (own->waiting != POOLS_NIL || own->fresh == POOLS_NIL)
        return;
    own->waiting = own->fresh;
    own->fresh = POOLS_NIL;
    for (u32 c = 0; c < p->cores; c++)
        if (c != core) {
            MR_POINT();
            own->passed[c] = __atomic_fetch_add(&k->line[c].next, 0, __ATOMIC_ACQ_REL);
        }
    if (pools_rested(p, k, core))
        pools_ready(p, own, &own->waiting);
}

/* ---- entries ---- */

/* An entry of the core's pool that is ready to be taken, or POOLS_NIL. */
MR_INLINE u32 pools_ready_take(struct pools *p, u32 core)
{
    u32 index = pools_pop(p, &p->pool[core].free);

    p->pool[core].frees -= index != POOLS_NIL;
    return index;
}

/* The same, after looking at those that rest. */
MR_INLINE u32 pools_take(struct pools *p, struct lock *k, u32 core)
{
    if (mr_unlikely(p->pool[core].free == POOLS_NIL))
        pools_settle(p, k, core);
    return pools_ready_take(p, core);
}

/* An entry that was taken is filed, and expires no earlier than `due`. */
MR_INLINE void pools_live(struct pools *p, u32 core, u32 index, u64 due)
{
    if (p->expires)
        expiry_push(&p->pool[core].expiry, index, due);
}

/* Gives back an entry that no bucket names any more. By any core. */
MR_INLINE void pools_free(struct pools *p, u32 core, u32 index)
{
    struct pool *owner = &p->pool[p->owner[index]];
    u32 head;

    if (p->owner[index] == core) {
        if (p->expires)
            expiry_remove(&owner->expiry, index);
        if (TRANSACT_FAULT(TRANSACT_FAULT_REST)) {
            pools_untake(p, core, index);
            return;
        }
        pools_push(p, &owner->fresh, index);
        return;
    }
    head = __atomic_load_n(&owner->returned, __ATOMIC_RELAXED);
    do {
        MR_POINT();
        p->link[index] = head;
    } while (!__atomic_compare_exchange_n(&owner->returned, &head, index, 0, __ATOMIC_RELEASE, __ATOMIC_RELAXED));
}

/* Moves the heaps to where they begin since entries changed hands from one core to another: all that move, move one way. */
MR_OUTLINE void pools_shift(struct pools *p)
{
    for (u32 c = 0; c < p->cores; c++) {
        struct expiry *e = &p->pool[c].expiry;
        struct expiry_item *to = pools_heap(p, c);

        if (to >= e->item)
            continue;
        memmove(to, e->item, e->count * sizeof *to);
        e->item = to;
    }
    for (u32 c = p->cores; c-- > 0;) {
        struct expiry *e = &p->pool[c].expiry;
        struct expiry_item *to = pools_heap(p, c);

        if (to <= e->item)
            continue;
        memmove(to, e->item, e->count * sizeof *to);
        e->item = to;
    }
}

/* Half of what the fullest pool has goes to a core that has nothing. 0: nothing is free. All lines held. */
MR_OUTLINE int pools_lend(struct pools *p, u32 core)
{
    struct pool *own = &p->pool[core], *fullest = own;

    for (u32 c = 0; c < p->cores; c++) {
        struct pool *pool = &p->pool[c];

        pools_receive(p, pool);
        pools_ready(p, pool, &pool->fresh);
        pools_ready(p, pool, &pool->waiting);
        if (pool->frees > fullest->frees)
            fullest = pool;
    }
    if (own->frees > 0)
        return 1;
    for (u32 n = fullest->frees - fullest->frees / 2; n > 0; n--) {
        u32 index = fullest->free;

        MR_POINT();
        fullest->free = p->link[index];
        fullest->frees--;
        p->owner[index] = (u16)core;
        fullest->owned--;
        own->owned++;
        if (p->queues)
            pools_append(p, own, index);
        else
            pools_untake(p, core, index);
    }
    if (p->expires)
        pools_shift(p);
    return own->frees > 0;
}

/* Takes a certain entry from among the free, which are looked through. All lines held. */
MR_OUTLINE void pools_pick(struct pools *p, u32 index)
{
    struct pool *own = &p->pool[p->owner[index]];
    u32 before = POOLS_NIL, i;

    pools_receive(p, own);
    pools_ready(p, own, &own->fresh);
    pools_ready(p, own, &own->waiting);
    for (i = own->free; i != index && i != POOLS_NIL; i = p->link[i])
        before = i;
    if (i == POOLS_NIL)
        return;
    if (before == POOLS_NIL)
        own->free = p->link[index];
    else
        p->link[before] = p->link[index];
    if (own->last == index)
        own->last = before;
    own->frees--;
}

/* The least bound of all cores' entries, and whose it is; UINT64_MAX if there is none. All lines held. */
MR_INLINE u64 pools_due(const struct pools *p, u32 *core)
{
    u64 due = UINT64_MAX;

    for (u32 c = 0; c < p->cores; c++) {
        const struct expiry *e = &p->pool[c].expiry;

        if (e->count > 0 && e->item[0].due < due) {
            due = e->item[0].due;
            *core = c;
        }
    }
    return due;
}

#endif
