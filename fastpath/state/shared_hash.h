/* shared_hash: what a map, or BPF's HASH, is where packets of several cores are transactions: the functions of the kind
 * (hash.h) over a transact_map. Which functions there are:
 *
 * - shared_hash_NAME: for who holds all lines (a packet that runs alone, handlers, control);
 * - shared_hash_packet_NAME, of calls that a packet may make beside others: values are read in place;
 * - shared_hash_copied_NAME, of the same calls: values are copies of the packet's own, which it may store to;
 * - shared_hash_few_NAME, of those that only look for an entry: the word is in a place of the program (sync/transact_few.h).
 *
 * The latter three give MR_RESTART or MR_RESTART_NUMBER where the attempt ends. `undo` of the packet is its core's struct
 * transact. Contract and memory: transact_map.h; it is created with `workers` of the configuration.
 */
#ifndef MR_SHARED_HASH_H
#define MR_SHARED_HASH_H

#include "hash.h"
#include "transact_map.h"
#include "transact_map_saved.h"

struct shared_hash {
    struct transact_map map;
};

static inline int shared_hash_create(struct shared_hash *h, const struct shape *s, const struct mr_config *config,
                                     const u8 *initial)
{
    (void)initial;
    return transact_map_create(&h->map, s, config);
}

static inline void shared_hash_destroy(struct shared_hash *h, const struct shape *s)
{
    transact_map_destroy(&h->map, s);
}

MR_INLINE u64 shared_hash_token(const struct shared_hash *h, const struct shape *s, const u64 *key)
{
    return transact_map_token(&h->map, s, key);
}

MR_INLINE u64 shared_hash_behind(const struct shared_hash *h, const struct shape *s, const u8 *p, s64 least)
{
    u64 at = (u64)p - (u64)transact_map_value(&h->map, s, 0) - (u64)least;
    u64 stride = table_stride(s, transact_map_head(s));

    return at < stride * s->capacity ? at % stride : ~0ull;
}

/* ---- for the prefetching passes ---- */

MR_INLINE void shared_hash_prefetch(const struct shared_hash *h, const struct shape *s, u64 token)
{
    (void)s;
    mr_prefetch(transact_map_first(&h->map, token));
}

/* The entry of the first way that matches, which the token names then, and where entries expire the core's own stamp of it, which a
 * refresh writes and every look reads. */
MR_INLINE u64 shared_hash_prefetch_entry_of(const struct shared_hash *h, const struct shape *s, u64 token, u32 core)
{
    u64 touched = transact_map_head(s) + mr_round_up(s->key_bytes, 8) + mr_round_up(s->value_bytes, 8);
    u64 named = transact_map_named(&h->map, s, token);

    if (!(named & TRANSACT_NAMED))
        return token;
    mr_prefetch_range(transact_map_entry(&h->map, s, (u32)named), touched <= 256 ? touched : 256);
    if (s->expire_after)
        mr_prefetch(stamps_at(&h->map.stamps, core, (u32)named));
    return named;
}

MR_INLINE u64 shared_hash_prefetch_entry(const struct shared_hash *h, const struct shape *s, u64 token)
{
    return shared_hash_prefetch_entry_of(h, s, token, 0);
}

/* How many entries there are is nowhere counted; what could be is what may outgrow the cache. */
MR_INLINE int shared_hash_cold(const struct shared_hash *h, const struct shape *s)
{
    (void)h;
    return s->capacity * table_stride(s, transact_map_head(s)) > MR_CACHE_BYTES;
}

/* Once a burst, by who has its line. */
MR_INLINE void shared_hash_settle(struct transact *t, struct shared_hash *h, const struct shape *s, u64 now)
{
    transact_map_age(t, &h->map, s, now);
}

/* ---- packets beside others ---- */

MR_INLINE struct transact *shared_hash_of(struct mr_packet *pkt) { return (struct transact *)pkt->undo; }

MR_INLINE u64 shared_hash_update(struct transact *t, struct shared_hash *h, const struct shape *s, const u64 *key,
                                 u64 token, const u8 *value, u64 flags)
{
    u8 *there;

    if (flags > HASH_BPF_EXIST)
        return mr_errno(EINVAL);
    if (flags != HASH_BPF_ANY) {
        there = transact_map_get(t, &h->map, s, key, token, 0, 0);
        if (there == MR_RESTART)
            return MR_RESTART_NUMBER;
        if (there && flags == HASH_BPF_NOEXIST)
            return mr_errno(EEXIST);
        if (!there && flags == HASH_BPF_EXIST)
            return mr_errno(ENOENT);
    }
    there = transact_map_put(t, &h->map, s, key, token, value);
    if (there == MR_RESTART)
        return MR_RESTART_NUMBER;
    return there ? 0 : mr_errno(E2BIG);
}

/* Calls of which all three kinds are written alike. `stores`: as of transact_map_get. */
#define SHARED_HASH_CALLS(prefix, begin, t, stores)                                                                     \
    MR_INLINE u8 *shared_hash_##prefix##map_get(struct shared_hash *h, const struct shape *s, const u64 *key,           \
                                                u64 token, struct mr_packet *pkt)                                       \
    {                                                                                                                   \
        begin;                                                                                                          \
        return transact_map_get(t, &h->map, s, key, token, 0, stores);                                                  \
    }                                                                                                                   \
    MR_INLINE u8 *shared_hash_##prefix##map_refresh(struct shared_hash *h, const struct shape *s, const u64 *key,       \
                                                    u64 token, struct mr_packet *pkt)                                   \
    {                                                                                                                   \
        begin;                                                                                                          \
        return transact_map_get(t, &h->map, s, key, token, 1, stores);                                                  \
    }                                                                                                                   \
    MR_INLINE u8 *shared_hash_##prefix##map_lookup_elem(struct shared_hash *h, const struct shape *s, const u64 *key,   \
                                                        u64 token, struct mr_packet *pkt)                               \
    {                                                                                                                   \
        begin;                                                                                                          \
        return transact_map_get(t, &h->map, s, key, token, 0, stores);                                                  \
    }                                                                                                                   \
    MR_INLINE u8 *shared_hash_##prefix##map_put(struct shared_hash *h, const struct shape *s, const u64 *key,           \
                                                u64 token, const u8 *value, struct mr_packet *pkt)                      \
    {                                                                                                                   \
        begin;                                                                                                          \
        return transact_map_put(t, &h->map, s, key, token, value);                                                      \
    }                                                                                                                   \
    MR_INLINE u64 shared_hash_##prefix##map_delete(struct shared_hash *h, const struct shape *s, const u64 *key,        \
                                                   u64 token, struct mr_packet *pkt)                                    \
    {                                                                                                                   \
        begin;                                                                                                          \
        return transact_map_delete(t, &h->map, s, key, token);                                                          \
    }                                                                                                                   \
    MR_INLINE u64 shared_hash_##prefix##map_update_elem(struct shared_hash *h, const struct shape *s, const u64 *key,   \
                                                        u64 token, const u8 *value, u64 flags, struct mr_packet *pkt)   \
    {                                                                                                                   \
        begin;                                                                                                          \
        return shared_hash_update(t, h, s, key, token, value, flags);                                                   \
    }                                                                                                                   \
    MR_INLINE u64 shared_hash_##prefix##map_delete_elem(struct shared_hash *h, const struct shape *s, const u64 *key,   \
                                                        u64 token, struct mr_packet *pkt)                               \
    {                                                                                                                   \
        u64 there;                                                                                                      \
        begin;                                                                                                          \
        there = transact_map_delete(t, &h->map, s, key, token);                                                         \
        return there == MR_RESTART_NUMBER ? there : there ? 0 : mr_errno(ENOENT);                                       \
    }

SHARED_HASH_CALLS(packet_, struct transact *t = shared_hash_of(pkt), t, 0)
SHARED_HASH_CALLS(copied_, struct transact *t = shared_hash_of(pkt), t, 1)

/* Where the words are in the sets, for one object by name: a function of its own, as the common case does without. */
typedef u8 *shared_hash_sets_fn(struct shared_hash *h, const u64 *key, u64 token, struct transact *t, int refresh, int stores);

#define SHARED_HASH_SETS(name, shape)                                                                                   \
    MR_OUTLINE u8 *name(struct shared_hash *h, const u64 *key, u64 token, struct transact *t, int refresh, int stores)  \
    {                                                                                                                   \
        return transact_map_get(t, &h->map, shape, key, token, refresh, stores);                                        \
    }

/* Lookups of a packet whose words are in `few` as long as all is well: `place` is this step's there, `copy` where it has its copy of
 * the value, of one that the packet may store to; else `sets` is for them. */
MR_INLINE u8 *shared_hash_few_find(struct shared_hash *h, const struct shape *s, const u64 *key, u64 token,
                                   struct mr_packet *pkt, int refresh, struct transact_few *few, u32 place, u8 *copy,
                                   shared_hash_sets_fn *sets)
{
    struct transact *t = shared_hash_of(pkt);
    u64 word[MR_KEY_WORDS_MAX];
    u8 *value;

    if (mr_likely(few->state == TRANSACT_FEW_PLACES)) {
        if (mr_likely(transact_map_few_get(t, &h->map, s, key, token, refresh, copy, pkt->time, &few->read[place], &value)))
            return value;
        transact_few_sets(t, pkt, few);
    }
    /* Nothing points to the program's own. */
    for (u32 i = 0; i < mr_words(s->key_bytes); i++)
        word[i] = key[i];
    return sets(h, word, token, t, refresh, copy != NULL);
}

#define SHARED_HASH_FEW(name, refresh)                                                                                  \
    MR_INLINE u8 *shared_hash_few_##name(struct shared_hash *h, const struct shape *s, const u64 *key, u64 token,       \
                                         struct mr_packet *pkt, struct transact_few *few, u32 place, u8 *copy,          \
                                         shared_hash_sets_fn *sets)                                                     \
    {                                                                                                                   \
        return shared_hash_few_find(h, s, key, token, pkt, refresh, few, place, copy, sets);                            \
    }

SHARED_HASH_FEW(map_get, 0)
SHARED_HASH_FEW(map_refresh, 1)
SHARED_HASH_FEW(map_lookup_elem, 0)

/* ---- alone ---- */

/* What operations of who is alone need of a struct transact. */
MR_INLINE void shared_hash_alone(struct transact *t, u32 core, u64 now, const struct transact *of)
{
    (void)of;
    TRANSACT_LOGGED(t->log = of ? of->log : NULL;)
    t->core = core;
    t->step = 0;
    t->time = now;
    t->alone = 1;
    t->pendings = t->helds = 0;
}

#define SHARED_HASH_ALONE(core, now, of)                                                                                \
    struct transact t;                                                                                                  \
    shared_hash_alone(&t, core, now, of)

SHARED_HASH_CALLS(, SHARED_HASH_ALONE(pkt->core, pkt->time, shared_hash_of(pkt)), &t, 1)

MR_INLINE u8 *shared_hash_map_slot(struct shared_hash *h, const struct shape *s, u64 place, u8 *key,
                                   struct mr_packet *pkt)
{
    if (!transact_map_lives(&h->map, s, place, pkt->time)) {
        memset(key, 0, s->key_bytes);
        return NULL;
    }
    memcpy(key, transact_map_key(&h->map, s, (u32)place), s->key_bytes);
    return transact_map_value(&h->map, s, (u32)place);
}

/* ---- control, by who holds all lines ---- */

static inline u64 shared_hash_count(struct shared_hash *h, const struct shape *s, u64 now)
{
    u64 count = 0;

    for (u64 i = 0; i < s->capacity; i++)
        count += (u64)transact_map_lives(&h->map, s, i, now);
    return count;
}

static inline u64 shared_hash_full(struct shared_hash *h, const struct shape *s, u64 now)
{
    (void)s;
    (void)now;
    return transact_map_full(&h->map);
}

static inline int shared_hash_get(struct shared_hash *h, const struct shape *s, const u8 *key, u8 *value, u64 now)
{
    u64 word[MR_KEY_WORDS_MAX];
    u8 *there;
    SHARED_HASH_ALONE(0, now, NULL);

    mr_pad_key(word, key, s->key_bytes);
    there = transact_map_get(&t, &h->map, s, word, transact_map_token(&h->map, s, word), 0, 0);
    if (!there)
        return -ENOENT;
    memcpy(value, there, s->value_bytes);
    return 0;
}

static inline int shared_hash_set(struct shared_hash *h, const struct shape *s, const u8 *key, const u8 *value, u64 now)
{
    u64 word[MR_KEY_WORDS_MAX];
    SHARED_HASH_ALONE(0, now, NULL);

    mr_pad_key(word, key, s->key_bytes);
    return transact_map_put(&t, &h->map, s, word, transact_map_token(&h->map, s, word), value) ? 0 : -E2BIG;
}

static inline int shared_hash_remove(struct shared_hash *h, const struct shape *s, const u8 *key, u64 now)
{
    u64 word[MR_KEY_WORDS_MAX];
    SHARED_HASH_ALONE(0, now, NULL);

    mr_pad_key(word, key, s->key_bytes);
    return transact_map_delete(&t, &h->map, s, word, transact_map_token(&h->map, s, word)) ? 0 : -ENOENT;
}

static inline int shared_hash_next(struct shared_hash *h, const struct shape *s, u64 *cursor, u8 *key, u8 *value,
                                   u64 now)
{
    return transact_map_next(&h->map, s, cursor, key, value, now);
}

/* ---- save and load ---- */

static inline int shared_hash_save(struct shared_hash *h, const struct shape *s, mr_saved_fn *fn, void *context)
{
    return transact_map_save(&h->map, s, fn, context);
}

static inline int shared_hash_load(struct shared_hash *h, const struct shape *s, const struct mr_saved *piece, u64 now)
{
    return transact_map_load(&h->map, s, piece, now);
}

#endif
