/* transact_map_saved: all content of a transact_map in pieces, by who holds all lines: the pieces of a hash (hash.h), so that
 * what one has kept the other goes on with. Included by shared_hash.h.
 *
 * The order in which free places are taken is each core's own and not kept: places are handed to cores in equal parts again. */
#ifndef MR_TRANSACT_MAP_SAVED_H
#define MR_TRANSACT_MAP_SAVED_H

#include "transact_map.h"

/* While it is loaded: nothing has been said of this place. */
#define TRANSACT_UNSAID (TRANSACT_DEAD | TRANSACT_DYING)

/* The piece of an entry, without its key; 0 if the place is free. */
MR_INLINE int transact_map_piece(struct transact_map *m, const struct shape *s, u32 i, struct mr_saved *piece)
{
    *piece = (struct mr_saved){ .what = MR_SAVED_ENTRY, .place = i, .due = UINT64_MAX, .length = s->value_bytes };
    if (*transact_map_word(m, s, i) & TRANSACT_DEAD)
        return 0;
    if (s->expire_after) {
        const struct expiry *e = &m->pools.pool[m->pools.owner[i]].expiry;

        piece->stamp = transact_stamp_joined(m, s, i);
        piece->bound = e->item[e->place[i]].due;
    }
    piece->value = transact_map_value(m, s, i);
    return 1;
}

static inline int transact_map_save(struct transact_map *m, const struct shape *s, mr_saved_fn *fn, void *context)
{
    struct mr_saved head = { .what = MR_SAVED_HEAD, .stamp = transact_map_full(m), .length = s->capacity };
    int error = fn(context, &head);

    for (u32 i = 0; !error && i < s->capacity; i++) {
        struct mr_saved piece;

        if (!transact_map_piece(m, s, i, &piece))
            continue;
        piece.key = (const u8 *)transact_map_key(m, s, i);
        error = fn(context, &piece);
    }
    for (u32 i = 0; !error && i < s->capacity; i++) {
        struct mr_saved piece = { .what = MR_SAVED_FREE, .place = i };

        for (; i < s->capacity && *transact_map_word(m, s, i) & TRANSACT_DEAD; i++)
            piece.length++;
        if (piece.length > 0)
            error = fn(context, &piece);
    }
    return error ? error : fn(context, &(struct mr_saved){ .what = MR_SAVED_END });
}

/* Empties it; nothing is said of its places. */
static inline void transact_map_load_head(struct transact_map *m, const struct shape *s, const struct mr_saved *piece)
{
    memset(m->bucket, 0, transact_map_buckets(s));
    transact_map_spare_list(m, s);
    for (u32 i = 0; i < s->capacity; i++)
        *transact_map_word(m, s, i) = TRANSACT_UNSAID;
    pools_empty(&m->pools, s);
    stamps_clear(&m->stamps);
    *stamps_at(&m->stamps, 0, m->stamps.places) = piece->stamp;
    m->word = m->until = 0;
}

static inline int transact_map_load_entry(struct transact_map *m, const struct shape *s, const struct mr_saved *piece, u64 now)
{
    u64 key[MR_KEY_WORDS_MAX], token, stamp = piece->bound ? piece->stamp : now;
    struct transact_find f;
    struct transact t = { .alone = 1 };
    u32 index = (u32)piece->place;

    if (piece->place >= s->capacity)
        return -E2BIG;
    mr_pad_key(key, piece->key, s->key_bytes);
    token = transact_map_token(m, s, key);
    if (*transact_map_word(m, s, index) != TRANSACT_UNSAID || transact_map_seek(&t, m, s, key, token, &f) == TRANSACT_THERE)
        return -EEXIST;
    if (!f.room)
        f.room = transact_map_lengthen(&t, m, f.first);
    transact_map_fill(m, s, index, key, piece->value, stamp);
    *transact_map_word(m, s, index) = 0;
    *f.room = table_signature(s, token) | index;
    if (s->expire_after)
        expiry_load(&m->pools.pool[m->pools.owner[index]].expiry, s, index, stamp, piece->bound);
    return 0;
}

static inline int transact_map_load_free(struct transact_map *m, const struct shape *s, const struct mr_saved *piece)
{
    if (piece->place >= s->capacity || piece->length > s->capacity - piece->place)
        return -E2BIG;
    for (u64 i = piece->place; i < piece->place + piece->length; i++) {
        if (*transact_map_word(m, s, (u32)i) != TRANSACT_UNSAID)
            return -EEXIST;
        *transact_map_word(m, s, (u32)i) = TRANSACT_DEAD;
    }
    return 0;
}

/* Places of which nothing was said are free, as there are where more entries fit than before. */
static inline void transact_map_load_end(struct transact_map *m, const struct shape *s)
{
    for (u64 i = s->capacity; i-- > 0;) {
        u64 *word = transact_map_word(m, s, (u32)i);

        if (!(*word & TRANSACT_DEAD))
            continue;
        *word = TRANSACT_DEAD;
        pools_untake(&m->pools, m->pools.owner[i], (u32)i);
    }
}

static inline int transact_map_load(struct transact_map *m, const struct shape *s, const struct mr_saved *piece, u64 now)
{
    switch (piece->what) {
    case MR_SAVED_HEAD:
        transact_map_load_head(m, s, piece);
        return 0;
    case MR_SAVED_ENTRY:
        return transact_map_load_entry(m, s, piece, now);
    case MR_SAVED_FREE:
        return transact_map_load_free(m, s, piece);
    case MR_SAVED_END:
        transact_map_load_end(m, s);
        return 0;
    default:
        return -EINVAL;
    }
}

#endif
