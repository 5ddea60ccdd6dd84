/* shared_allocator: what an allocator is where packets of several cores are transactions: the functions of the kind
 * (allocator.h) over numbers in pools (transact_leases.h). As in shared_hash.h:
 *
 * - shared_allocator_NAME: for who holds all lines (a packet that runs alone, handlers, control);
 * - shared_allocator_packet_NAME: for a packet beside others: values are read in place;
 * - shared_allocator_copied_NAME: the same with values that are copies of the packet's own;
 * - shared_allocator_few_NAME: either, of those that only look, with the word in a place of the program (sync/transact_few.h).
 *
 * All content is kept in the pieces of allocator.h, so that what one has kept the other goes on with; since when numbers are free
 * is not, and the order in which they are is that of one pool after the other.
 */
#ifndef MR_SHARED_ALLOCATOR_H
#define MR_SHARED_ALLOCATOR_H

#include "allocator.h"
#include "shared_hash.h"
#include "transact_leases.h"

struct shared_allocator {
    struct transact_map map;
};

static inline int shared_allocator_create(struct shared_allocator *a, const struct shape *s,
                                          const struct mr_config *config, const u8 *initial)
{
    (void)initial;
    if (s->first > INT64_MAX - s->capacity)
        return -EINVAL;
    return transact_map_create(&a->map, s, config);
}

static inline void shared_allocator_destroy(struct shared_allocator *a, const struct shape *s)
{
    transact_map_destroy(&a->map, s);
}

/* ---- for the prefetching passes: the token is the number, one touch is all there is ---- */

MR_INLINE u64 shared_allocator_token(const struct shared_allocator *a, const struct shape *s, const u64 *key)
{
    (void)a;
    (void)s;
    return key[0];
}

MR_INLINE void shared_allocator_prefetch(const struct shared_allocator *a, const struct shape *s, u64 token)
{
    u64 index = token - s->first < s->capacity ? token - s->first : 0;
    u64 touched = transact_map_head(s) + 8 + s->value_bytes;

    mr_prefetch_range(transact_map_entry(&a->map, s, (u32)index), touched <= 256 ? touched : 256);
}

MR_INLINE u64 shared_allocator_prefetch_entry(const struct shared_allocator *a, const struct shape *s, u64 token)
{
    (void)a;
    (void)s;
    return token;
}

MR_INLINE int shared_allocator_cold(const struct shared_allocator *a, const struct shape *s)
{
    (void)a;
    return s->capacity * table_stride(s, transact_map_head(s)) > MR_CACHE_BYTES;
}

/* Once a burst, by who has its line. */
MR_INLINE void shared_allocator_settle(struct transact *t, struct shared_allocator *a, const struct shape *s, u64 now)
{
    transact_map_age(t, &a->map, s, now);
}

/* ---- packets ---- */

#define SHARED_ALLOCATOR_CALLS(prefix, begin, t, stores)                                                                \
    MR_INLINE u64 shared_allocator_##prefix##allocator_lease(struct shared_allocator *a, const struct shape *s,         \
                                                             const u8 *value, struct mr_packet *pkt)                    \
    {                                                                                                                   \
        begin;                                                                                                          \
        return transact_leases_lease(t, &a->map, s, value);                                                             \
    }                                                                                                                   \
    MR_INLINE u8 *shared_allocator_##prefix##allocator_get(struct shared_allocator *a, const struct shape *s,           \
                                                           u64 number, struct mr_packet *pkt)                           \
    {                                                                                                                   \
        begin;                                                                                                          \
        return transact_leases_get(t, &a->map, s, number, 0, stores);                                                   \
    }                                                                                                                   \
    MR_INLINE u8 *shared_allocator_##prefix##allocator_refresh(struct shared_allocator *a, const struct shape *s,       \
                                                               u64 number, struct mr_packet *pkt)                       \
    {                                                                                                                   \
        begin;                                                                                                          \
        return transact_leases_get(t, &a->map, s, number, 1, stores);                                                   \
    }                                                                                                                   \
    MR_INLINE u64 shared_allocator_##prefix##allocator_free(struct shared_allocator *a, const struct shape *s,          \
                                                            u64 number, struct mr_packet *pkt)                          \
    {                                                                                                                   \
        begin;                                                                                                          \
        return transact_leases_free(t, &a->map, s, number);                                                             \
    }

SHARED_ALLOCATOR_CALLS(packet_, struct transact *t = shared_hash_of(pkt), t, 0)
SHARED_ALLOCATOR_CALLS(copied_, struct transact *t = shared_hash_of(pkt), t, 1)
SHARED_ALLOCATOR_CALLS(, SHARED_HASH_ALONE(pkt->core, pkt->time, shared_hash_of(pkt)), &t, 1)

/* As of shared_hash.h. */
typedef u8 *shared_allocator_sets_fn(struct shared_allocator *o, u64 number, struct transact *t, int refresh, int stores);

#define SHARED_ALLOCATOR_SETS(name, shape) TRANSACT_LEASES_SETS(shared_allocator, name, shape)

TRANSACT_LEASES_FEW(shared_allocator, allocator_get, 0)
TRANSACT_LEASES_FEW(shared_allocator, allocator_refresh, 1)

/* ---- control, by who holds all lines; the key is the number, as many of its bytes as `key_bytes` ---- */

static inline u64 shared_allocator_count(struct shared_allocator *a, const struct shape *s, u64 now)
{
    u64 count = 0;

    for (u64 i = 0; i < s->capacity; i++)
        count += (u64)transact_map_lives(&a->map, s, i, now);
    return count;
}

static inline u64 shared_allocator_full(struct shared_allocator *a, const struct shape *s, u64 now)
{
    (void)s;
    (void)now;
    return transact_map_full(&a->map);
}

static inline int shared_allocator_get(struct shared_allocator *a, const struct shape *s, const u8 *key, u8 *value, u64 now)
{
    u64 index = mr_number(s, key) - s->first;

    if (!transact_map_lives(&a->map, s, index, now))
        return -ENOENT;
    memcpy(value, transact_map_value(&a->map, s, (u32)index), s->value_bytes);
    return 0;
}

/* Changes the value of a lease, or leases this number: state that is handed in from outside. */
static inline int shared_allocator_set(struct shared_allocator *a, const struct shape *s, const u8 *key, const u8 *value,
                                       u64 now)
{
    struct transact_map *m = &a->map;
    u64 index = mr_number(s, key) - s->first, *word;
    SHARED_HASH_ALONE(0, now, NULL);

    if (index >= s->capacity)
        return -ENOENT;
    word = transact_map_word(m, s, (u32)index);
    if (transact_map_lives(m, s, index, now)) {
        transact_put_bytes(transact_map_value(m, s, (u32)index), value, s->value_bytes);
    } else {
        if (!(*word & TRANSACT_DEAD))
            transact_map_remove(&t, m, s, NULL, NULL, (u32)index);
        pools_pick(&m->pools, (u32)index);
        transact_leases_fill(m, s, (u32)index, value, now);
        pools_live(&m->pools, m->pools.owner[index], (u32)index, expiry_due(now, s->expire_after));
    }
    transact_move_on(&t, word, 0);
    return 0;
}

static inline int shared_allocator_remove(struct shared_allocator *a, const struct shape *s, const u8 *key, u64 now)
{
    SHARED_HASH_ALONE(0, now, NULL);
    return transact_leases_free(&t, &a->map, s, mr_number(s, key)) ? 0 : -ENOENT;
}

static inline int shared_allocator_next(struct shared_allocator *a, const struct shape *s, u64 *cursor, u8 *key, u8 *value,
                                        u64 now)
{
    return transact_map_next(&a->map, s, cursor, key, value, now);
}

/* ---- save and load ---- */

static inline int shared_allocator_save(struct shared_allocator *a, const struct shape *s, mr_saved_fn *fn, void *context)
{
    struct transact_map *m = &a->map;
    struct mr_saved head = {
        .what = MR_SAVED_HEAD, .place = s->capacity, .stamp = transact_map_full(m), .bound = s->first, .length = s->capacity
    };
    int error = fn(context, &head);

    for (u32 i = 0; !error && i < s->capacity; i++) {
        struct mr_saved piece;

        if (transact_map_piece(m, s, i, &piece))
            error = fn(context, &piece);
    }
    for (u32 c = 0; !error && c < m->pools.cores; c++) {
        struct pool *pool = &m->pools.pool[c];

        /* Whoever saves holds all lines, which ends every rest. */
        pools_receive(&m->pools, pool);
        pools_ready(&m->pools, pool, &pool->waiting);
        pools_ready(&m->pools, pool, &pool->fresh);
        for (u32 i = pool->free; !error && i != POOLS_NIL; i = m->pools.link[i])
            error = fn(context, &(struct mr_saved){ .what = MR_SAVED_FREE, .place = i, .length = 1 });
    }
    return error ? error : fn(context, &(struct mr_saved){ .what = MR_SAVED_END });
}

/* The place of the head is the first number that was never leased. Until the end `until` keeps it. */
static inline int shared_allocator_load_head(struct transact_map *m, const struct shape *s, const struct mr_saved *piece)
{
    if (piece->bound != s->first)
        return -EDOM;
    if (piece->place > s->capacity)
        return -E2BIG;
    transact_map_load_head(m, s, piece);
    m->until = piece->place;
    return 0;
}

static inline int shared_allocator_load_entry(struct transact_map *m, const struct shape *s, const struct mr_saved *piece,
                                              u64 now)
{
    u32 index = (u32)piece->place;
    u64 stamp = piece->bound ? piece->stamp : now;

    if (piece->place >= m->until)
        return -E2BIG;
    if (*transact_map_word(m, s, index) != TRANSACT_UNSAID)
        return -EEXIST;
    transact_leases_fill(m, s, index, piece->value, stamp);
    *transact_map_word(m, s, index) = 0;
    if (s->expire_after)
        expiry_load(&m->pools.pool[m->pools.owner[index]].expiry, s, index, stamp, piece->bound);
    return 0;
}

/* Every number that was ever leased is leased or free now; those behind come last. */
static inline int shared_allocator_load_end(struct transact_map *m, const struct shape *s)
{
    u64 fresh = m->until;

    m->until = 0;
    for (u64 i = 0; i < s->capacity; i++) {
        u64 *word = transact_map_word(m, s, (u32)i);

        if (*word != TRANSACT_UNSAID)
            continue;
        if (i < fresh)
            return -EINVAL;
        *word = TRANSACT_DEAD;
        pools_append(&m->pools, &m->pools.pool[m->pools.owner[i]], (u32)i);
    }
    return 0;
}

static inline int shared_allocator_load(struct shared_allocator *a, const struct shape *s, const struct mr_saved *piece,
                                        u64 now)
{
    struct transact_map *m = &a->map;
    u64 *word;

    switch (piece->what) {
    case MR_SAVED_HEAD:
        return shared_allocator_load_head(m, s, piece);
    case MR_SAVED_ENTRY:
        return shared_allocator_load_entry(m, s, piece, now);
    case MR_SAVED_FREE:
        if (piece->place >= m->until || piece->length != 1)
            return -E2BIG;
        word = transact_map_word(m, s, (u32)piece->place);
        if (*word != TRANSACT_UNSAID)
            return -EEXIST;
        *word = TRANSACT_DEAD;
        pools_append(&m->pools, &m->pools.pool[m->pools.owner[piece->place]], (u32)piece->place);
        return 0;
    case MR_SAVED_END:
        return shared_allocator_load_end(m, s);
    default:
        return -EINVAL;
    }
}

#endif
