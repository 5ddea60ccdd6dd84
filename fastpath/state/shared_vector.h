/* shared_vector: what a vector is where packets of several cores are transactions: elements with version words, the entries of
 * transact_leases.h, all of which are there from the start and stay. As in shared_hash.h:
 *
 * - shared_vector_vector_at: for who holds all lines;
 * - shared_vector_packet_vector_at: for a packet beside others: the element is read in place;
 * - shared_vector_copied_vector_at: the same with a copy of the packet's own, which it may store to;
 * - shared_vector_few_vector_at: either, with its word in a place of the program (sync/transact_few.h).
 *
 * An index beyond the last reads no word, as it is absent whatever happens. Memory: transact_leases.h.
 */
#ifndef MR_SHARED_VECTOR_H
#define MR_SHARED_VECTOR_H

#include "shared_hash.h"
#include "transact_leases.h"

struct shared_vector {
    struct transact_map map;
};

static inline int shared_vector_create(struct shared_vector *v, const struct shape *s, const struct mr_config *config,
                                       const u8 *initial)
{
    int error = transact_map_create(&v->map, s, config);

    (void)initial;
    if (error)
        return error;
    /* None is free, and none expires. */
    pools_empty(&v->map.pools, s);
    for (u32 i = 0; i < s->capacity; i++) {
        *transact_map_word(&v->map, s, i) = 0;
        mr_number_out(s, (u8 *)transact_map_key(&v->map, s, i), i);
    }
    return 0;
}

static inline void shared_vector_destroy(struct shared_vector *v, const struct shape *s)
{
    transact_map_destroy(&v->map, s);
}

/* ---- for the prefetching passes: the token is the index ---- */

MR_INLINE u64 shared_vector_token(const struct shared_vector *v, const struct shape *s, const u64 *key)
{
    (void)v;
    (void)s;
    return key[0];
}

MR_INLINE void shared_vector_prefetch(const struct shared_vector *v, const struct shape *s, u64 token)
{
    u64 touched = transact_map_head(s) + mr_round_up(s->key_bytes, 8) + s->value_bytes;

    mr_prefetch_range(transact_map_entry(&v->map, s, token < s->capacity ? (u32)token : 0), touched <= 256 ? touched : 256);
}

MR_INLINE u64 shared_vector_prefetch_entry(const struct shared_vector *v, const struct shape *s, u64 token)
{
    (void)v;
    (void)s;
    return token;
}

MR_INLINE int shared_vector_cold(const struct shared_vector *v, const struct shape *s)
{
    (void)v;
    return s->capacity * table_stride(s, transact_map_head(s)) > MR_CACHE_BYTES;
}

/* Nothing rests and nothing expires. */
MR_INLINE void shared_vector_settle(struct transact *t, struct shared_vector *v, const struct shape *s, u64 now)
{
    (void)t;
    (void)v;
    (void)s;
    (void)now;
}

/* ---- packets ---- */

#define SHARED_VECTOR_AT(prefix, begin, t, stores)                                                                      \
    MR_INLINE u8 *shared_vector_##prefix##vector_at(struct shared_vector *v, const struct shape *s, u64 index,          \
                                                    struct mr_packet *pkt)                                              \
    {                                                                                                                   \
        begin;                                                                                                          \
        return transact_leases_get(t, &v->map, s, index, 0, stores);                                                    \
    }

SHARED_VECTOR_AT(packet_, struct transact *t = shared_hash_of(pkt), t, 0)
SHARED_VECTOR_AT(copied_, struct transact *t = shared_hash_of(pkt), t, 1)
SHARED_VECTOR_AT(, SHARED_HASH_ALONE(pkt->core, pkt->time, shared_hash_of(pkt)), &t, 1)

/* As of shared_hash.h. */
typedef u8 *shared_vector_sets_fn(struct shared_vector *o, u64 number, struct transact *t, int refresh, int stores);

#define SHARED_VECTOR_SETS(name, shape) TRANSACT_LEASES_SETS(shared_vector, name, shape)

TRANSACT_LEASES_FEW(shared_vector, vector_at, 0)

/* ---- control, by who holds all lines ---- */

static inline u64 shared_vector_count(struct shared_vector *v, const struct shape *s, u64 now)
{
    (void)v;
    (void)now;
    return s->capacity;
}

static inline u8 *shared_vector_element(struct shared_vector *v, const struct shape *s, u64 index)
{
    return index < s->capacity ? transact_map_value(&v->map, s, (u32)index) : NULL;
}

static inline int shared_vector_get(struct shared_vector *v, const struct shape *s, const u8 *key, u8 *value, u64 now)
{
    const u8 *element = shared_vector_element(v, s, mr_number(s, key));

    (void)now;
    if (!element)
        return -ENOENT;
    memcpy(value, element, s->value_bytes);
    return 0;
}

static inline int shared_vector_set(struct shared_vector *v, const struct shape *s, const u8 *key, const u8 *value, u64 now)
{
    u8 *element = shared_vector_element(v, s, mr_number(s, key));
    SHARED_HASH_ALONE(0, now, NULL);

    if (!element)
        return -E2BIG;
    transact_put_bytes(element, value, s->value_bytes);
    transact_move_on(&t, transact_map_word(&v->map, s, (u32)mr_number(s, key)), 0);
    return 0;
}

static inline int shared_vector_remove(struct shared_vector *v, const struct shape *s, const u8 *key, u64 now)
{
    (void)v;
    (void)s;
    (void)key;
    (void)now;
    return -EINVAL;
}

static inline int shared_vector_next(struct shared_vector *v, const struct shape *s, u64 *cursor, u8 *key, u8 *value,
                                     u64 now)
{
    return transact_map_next(&v->map, s, cursor, key, value, now);
}

/* ---- save and load: the pieces of elements.h, elements of zeros left out ---- */

static inline int shared_vector_save(struct shared_vector *v, const struct shape *s, mr_saved_fn *fn, void *context)
{
    int error = fn(context, &(struct mr_saved){ .what = MR_SAVED_HEAD, .length = s->capacity });

    for (u64 i = 0; !error && i < s->capacity; i++) {
        struct mr_saved piece = { .what = MR_SAVED_ENTRY, .place = i, .due = UINT64_MAX, .length = s->value_bytes };
        const u8 *element = shared_vector_element(v, s, i);
        u32 at = 0;

        while (at < s->value_bytes && element[at] == 0)
            at++;
        if (at == s->value_bytes)
            continue;
        piece.value = element;
        error = fn(context, &piece);
    }
    return error ? error : fn(context, &(struct mr_saved){ .what = MR_SAVED_END });
}

static inline int shared_vector_load(struct shared_vector *v, const struct shape *s, const struct mr_saved *piece, u64 now)
{
    u8 *element;

    (void)now;
    switch (piece->what) {
    case MR_SAVED_HEAD:
        for (u64 i = 0; i < s->capacity; i++)
            memset(shared_vector_element(v, s, i), 0, s->value_bytes);
        return 0;
    case MR_SAVED_ENTRY:
        element = shared_vector_element(v, s, piece->place);
        if (!element)
            return -E2BIG;
        memcpy(element, piece->value, s->value_bytes);
        return 0;
    case MR_SAVED_END:
        return 0;
    default:
        return -EINVAL;
    }
}

#endif
