/* transact_leases: numbers that cores lease, and the values kept with them, where packets are transactions: a transact_map
 * without buckets, whose entries are found by number. Included by shared_allocator.h.
 *
 * Contract: that of allocator.h (a lease ends when it is freed or its age reaches `expire_after`; -1 only when every number is leased)
 * for packets one after the other in the order in which they commit, but for which number a lease takes: of those of the core's own
 * pool the one that has been free the longest (state/pools.h). What a map has a bucket's word for, that nothing is there, the word
 * of the number itself says: it is dead while the number is free, and a lease writes it.
 *
 * - Get: the entry's word is read, whether the number is leased or free. A value that the packet may store to is copied.
 * - Lease: a number of the core's own pool, filled at once; its word is written. No word that another core's lease writes.
 * - Free: the entry's word is written; where the object is marked full, the object's, too.
 * - Refresh, expiry, rest, fullness, time: as of a map. A freed number rests until each other core's line has passed.
 * - A pool run dry: the packet runs alone, has half of the fullest pool, or reclaims the lease that has expired the longest; if there is
 *   nothing, the object is marked full, and packets are refused beside each other until a number is freed or may expire.
 *
 * Memory: that of transact_map.h without buckets.
 */
#ifndef MR_TRANSACT_LEASES_H
#define MR_TRANSACT_LEASES_H

#include "transact_map.h"

/* What is known of an index, which is below the capacity. Free: `seen` is the dead word. */
MR_INLINE enum transact_sought transact_leases_seek(struct transact *t, struct transact_map *m, const struct shape *s,
                                                    u32 index, struct transact_find *f)
{
    int still;

    f->index = index;
    f->own = mr_unlikely(t->pendings) ? transact_map_pending(t, m, TRANSACT_INSERTED, index, NULL) : NULL;
    if (mr_unlikely(f->own != NULL))
        return TRANSACT_OWN;
    still = transact_look(t, transact_map_word(m, s, index), &f->seen);
    if (mr_unlikely(t->pendings) && transact_map_pending(t, m, TRANSACT_REMOVED, index, NULL))
        return TRANSACT_ABSENT;
    if (!t->alone && (!still || f->seen & TRANSACT_DYING)) {
        TRANSACT_PROFILED(t->met = transact_map_word(m, s, index);)
        return TRANSACT_MET;
    }
    return f->seen & TRANSACT_DEAD ? TRANSACT_ABSENT : TRANSACT_THERE;
}

/* Nobody has the number: so says its word, or this packet has freed it. */
MR_INLINE int transact_leases_absent(struct transact *t, struct transact_map *m, const struct shape *s,
                                     const struct transact_find *f)
{
    return !TRANSACT_FAULT(TRANSACT_FAULT_MISSES) && transact_read(t, transact_map_word(m, s, f->index), f->seen);
}

MR_OUTLINE u8 *transact_leases_alone_get(struct transact *t, struct transact_map *m, const struct shape *s, u32 index,
                                         int refresh)
{
    struct transact_find f;

    if (transact_leases_seek(t, m, s, index, &f) != TRANSACT_THERE)
        return NULL;
    if (s->expire_after && expiry_over(transact_stamp_joined(m, s, index), s->expire_after, t->time)) {
        transact_map_expired(t, m, s, index);
        transact_map_remove(t, m, s, NULL, NULL, index);
        return NULL;
    }
    if (refresh)
        transact_map_touch(t, m, s, index);
    return transact_map_value(m, s, index);
}

/* The value kept with a number, or NULL; `refresh` and `stores` as of transact_map_get. */
MR_INLINE u8 *transact_leases_get(struct transact *t, struct transact_map *m, const struct shape *s, u64 number, int refresh,
                                  int stores)
{
    u64 index = number - s->first;
    struct transact_find f;

    if (index >= s->capacity)
        return NULL;
    if (mr_unlikely(t->alone))
        return transact_leases_alone_get(t, m, s, (u32)index, refresh);
    switch (transact_leases_seek(t, m, s, (u32)index, &f)) {
    case TRANSACT_MET:
        t->again = 1;
        return MR_RESTART;
    case TRANSACT_OWN:
        return transact_map_value(m, s, (u32)index);
    case TRANSACT_ABSENT:
        return transact_leases_absent(t, m, s, &f) ? MR_RESTART : NULL;
    case TRANSACT_THERE:
        break;
    }
    return transact_map_found(t, m, s, &f, refresh, stores);
}

/* As transact_map_few_get, of an index below the capacity. That a number is free is for the sets to say. */
MR_INLINE int transact_leases_few_get(const struct transact *t, struct transact_map *m, const struct shape *s, u64 index,
                                      int refresh, u8 *copy, u64 now, struct transact_few_read *f, u8 **value)
{
    u8 *entry = transact_map_entry(m, s, (u32)index);
    u64 seen = transact_load((u64 *)entry);

    if (mr_unlikely(seen & TRANSACT_FLAGS))
        return 0;
    return transact_map_few_found(t, m, s, (u32)index, entry, seen, refresh, copy, now, f, value);
}

MR_INLINE void transact_leases_fill(struct transact_map *m, const struct shape *s, u32 index, const u8 *value, u64 now)
{
    u64 key[MR_KEY_WORDS_MAX];

    key[0] = s->first + index;
    transact_map_fill(m, s, index, key, value, now);
}

MR_OUTLINE u64 transact_leases_alone_lease(struct transact *t, struct transact_map *m, const struct shape *s,
                                           const u8 *value)
{
    u32 index = transact_map_alone_take(t, m, s);

    if (index == POOLS_NIL)
        return UINT64_MAX;
    transact_leases_fill(m, s, index, value, t->time);
    transact_move_on(t, transact_map_word(m, s, index), 0);
    pools_live(&m->pools, t->core, index, expiry_due(t->time, s->expire_after));
    return s->first + index;
}

/* A number, UINT64_MAX where none is free; MR_RESTART_NUMBER. */
MR_INLINE u64 transact_leases_lease(struct transact *t, struct transact_map *m, const struct shape *s, const u8 *value)
{
    u32 index, effect = t->effects;
    struct transact_pending *p;

    if (mr_unlikely(t->alone))
        return transact_leases_alone_lease(t, m, s, value);
    index = pools_take(&m->pools, t->lock, t->core);
    if (mr_unlikely(index == POOLS_NIL))
        return transact_map_refused(t, m) ? UINT64_MAX : MR_RESTART_NUMBER;
    if (transact_effect(t, (struct transact_effect){ TRANSACT_LIVE, &m->pools, index,
                                                     expiry_due(t->time, s->expire_after) })) {
        pools_untake(&m->pools, t->core, index);
        return MR_RESTART_NUMBER;
    }
    /* Who finds the number dead looks no further, and who had it alive is gone: it has rested. */
    transact_leases_fill(m, s, index, value, t->time);
    if (transact_write(t, transact_map_word(m, s, index), transact_load(transact_map_word(m, s, index)), 0) ||
        !(p = transact_pend(t, TRANSACT_INSERTED, m, index)))
        return MR_RESTART_NUMBER;
    p->effect = effect;
    return s->first + index;
}

MR_OUTLINE u64 transact_leases_alone_free(struct transact *t, struct transact_map *m, const struct shape *s, u32 index)
{
    struct transact_find f;
    u64 there;

    if (transact_leases_seek(t, m, s, index, &f) != TRANSACT_THERE)
        return 0;
    there = !s->expire_after || !expiry_over(transact_stamp_joined(m, s, index), s->expire_after, t->time);
    transact_map_remove(t, m, s, NULL, NULL, index);
    return there;
}

/* 1 if it was leased, 0 if not; MR_RESTART_NUMBER. */
MR_INLINE u64 transact_leases_free(struct transact *t, struct transact_map *m, const struct shape *s, u64 number)
{
    u64 index = number - s->first, full;
    struct transact_find f;
    struct transact_pending *copied;

    if (index >= s->capacity)
        return 0;
    if (mr_unlikely(t->alone))
        return transact_leases_alone_free(t, m, s, (u32)index);
    switch (transact_leases_seek(t, m, s, (u32)index, &f)) {
    case TRANSACT_MET:
        t->again = 1;
        return MR_RESTART_NUMBER;
    case TRANSACT_OWN:
        /* As if it had not been leased; the number is kept for the packet's time. */
        t->effect[f.own->effect].kind = TRANSACT_UNTAKE;
        f.own->change = TRANSACT_CANCELLED;
        transact_look(t, transact_map_word(m, s, (u32)index), &f.seen);
        return transact_write(t, transact_map_word(m, s, (u32)index), f.seen, TRANSACT_DEAD) ? MR_RESTART_NUMBER : 1;
    case TRANSACT_ABSENT:
        return transact_leases_absent(t, m, s, &f) ? MR_RESTART_NUMBER : 0;
    case TRANSACT_THERE:
        break;
    }
    if (transact_map_there(t, m, s, &f) < 0)
        return MR_RESTART_NUMBER;
    full = transact_load(&m->word);
    if (full & TRANSACT_TAKEN) {
        t->again = 1;
        return MR_RESTART_NUMBER;
    }
    copied = transact_map_pending(t, m, TRANSACT_COPIED, f.index, NULL);
    if (copied)
        copied->change = TRANSACT_CANCELLED;
    if (transact_write(t, transact_map_word(m, s, f.index), f.seen, TRANSACT_DEAD) ||
        (full & TRANSACT_FULL && transact_write(t, &m->word, full, 0)) ||
        transact_effect(t, (struct transact_effect){ TRANSACT_FREE, &m->pools, f.index, 0 }) ||
        !transact_pend(t, TRANSACT_REMOVED, m, f.index))
        return MR_RESTART_NUMBER;
    return 1;
}

/* Of kinds whose entries are numbers, as SHARED_HASH_SETS and SHARED_HASH_FEW of shared_hash.h are of keys. */
#define TRANSACT_LEASES_SETS(kind, name, shape)                                                                         \
    MR_OUTLINE u8 *name(struct kind *o, u64 number, struct transact *t, int refresh, int stores)                        \
    {                                                                                                                   \
        return transact_leases_get(t, &o->map, shape, number, refresh, stores);                                         \
    }

#define TRANSACT_LEASES_FEW(kind, name, refresh)                                                                        \
    MR_INLINE u8 *kind##_few_##name(struct kind *o, const struct shape *s, u64 number,                                  \
                                struct mr_packet *pkt, struct transact_few *few, u32 place, u8 *copy,                   \
                                kind##_sets_fn *sets)                                                                   \
    {                                                                                                                   \
        struct transact *t = shared_hash_of(pkt);                                                                       \
        u64 index = number - s->first;                                                                                  \
        u8 *value;                                                                                                      \
                                                                                                                        \
        if (index >= s->capacity)                                                                                       \
            return NULL;                                                                                                \
        if (mr_likely(few->state == TRANSACT_FEW_PLACES)) {                                                             \
            if (mr_likely(transact_leases_few_get(t, &o->map, s, index, refresh, copy, pkt->time, &few->read[place], &value)))\
                return value;                                                                                           \
            transact_few_sets(t, pkt, few);                                                                             \
        }                                                                                                               \
        return sets(o, number, t, refresh, copy != NULL);                                                               \
    }

#endif
