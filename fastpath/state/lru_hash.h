/* lru_hash: entries by key; a full table makes room. Serves BPF's LRU_HASH and LRU_PERCPU_HASH (one
 * instance is one CPU).
 *
 * Contract. Inserting never fails for lack of room: a full table of `capacity` entries gives up one
 * that was not looked up or updated since the hand last passed it, if there is any, else the one
 * under the hand. Which one depends on the operations alone, not on the secret. Looking from control
 * is not use. Errors are those of `hash` without -E2BIG: `map_update_elem` -EINVAL, -EEXIST, -ENOENT,
 * `map_delete_elem` -ENOENT. The kernel evicts by lists of its own and earlier (it keeps free entries
 * per CPU): which entries survive is not comparable there, that at most `capacity` do is.
 *
 * Pointers to values as in hash.h; an evicted entry's pointer shows the entry that took its place.
 *
 * The rule is CLOCK, second chance (Corbato: A Paging Experiment with the Multics System, 1968), the
 * used bits apart from the entries, 64 a word: a lookup reads a bit that is in the cache and writes it
 * only when it was clear, and an eviction clears 64 bits at a step, at most capacity / 64 + 2 of them.
 *
 * Memory: bytes = mapped(table(0) + round_up(8 * ceil(capacity / 64), 64)); table as in table.h. Timers
 * as in timers.h. Noted: and that of notes.h. A look is no change that is noted: the bit of an entry in a copy is that of
 * its last one.
 */
#ifndef MR_LRU_HASH_H
#define MR_LRU_HASH_H

#include "notes.h"
#include "table.h"
#include "timer_helpers.h"

struct lru_hash {
    struct table table;
    u64 *lately; /* a bit an entry: used since the hand passed */
    u32 hand;    /* the entry that is judged next */
    struct timers timers;
    struct notes notes;
};

MR_INLINE u64 lru_hash_part(const struct shape *s)
{
    return table_part(s, 0) + mr_part(8 * mr_round_up(s->capacity, 64) / 64);
}

MR_INLINE u64 lru_hash_bytes(const struct shape *s)
{
    return mr_mapped_bytes(lru_hash_part(s)) + timers_bytes(s);
}

static inline int lru_hash_create(struct lru_hash *h, const struct shape *s,
                                  const struct mr_config *config, const u8 *initial)
{
    int error = table_valid(s);
    u8 *memory;

    (void)initial;
    *h = (struct lru_hash){0};
    if (error)
        return error;
    memory = mr_map_memory(lru_hash_part(s));
    if (!memory)
        return -ENOMEM;
    table_create(&h->table, s, 0, config->hash_seed, &memory);
    h->lately = (u64 *)memory;
    error = timers_create(&h->timers, s);
    if (!error) {
        error = notes_create(&h->notes, s);
        if (error)
            timers_destroy(&h->timers, s);
    }
    if (error)
        mr_unmap_memory(h->table.bucket, lru_hash_part(s));
    return error;
}

static inline void lru_hash_destroy(struct lru_hash *h, const struct shape *s)
{
    mr_unmap_memory(h->table.bucket, lru_hash_part(s));
    timers_destroy(&h->timers, s);
    notes_destroy(&h->notes, s);
    *h = (struct lru_hash){0};
}

MR_INLINE void lru_hash_use(struct lru_hash *h, u32 index)
{
    u64 bit = 1ull << (index & 63);

    if (mr_unlikely(!(h->lately[index >> 6] & bit)))
        h->lately[index >> 6] |= bit;
}

/* A value that `p` points into is written. */
MR_INLINE void lru_hash_written(struct lru_hash *h, const struct shape *s, const u8 *p)
{
    if (s->noted)
        notes_add(&h->notes, s, table_place(&h->table, s, 0, p), 0);
}

/* The first entry from the hand on whose bit is clear; clears the bits it passes. All entries are
 * taken when this is called, and after one round all bits are clear. */
MR_INLINE u32 lru_hash_victim(struct lru_hash *h, const struct shape *s)
{
    for (;;) {
        u32 first = h->hand & 63;
        u64 *word = &h->lately[h->hand >> 6];
        u64 clear = ~*word >> first << first;
        u64 end = h->hand - first + (clear ? (u64)__builtin_ctzll(clear) : 64);

        if (end >= s->capacity || !clear) {
            /* Past the end or the word: everything from the hand to here was used. */
            *word &= (1ull << first) - 1;
            h->hand = end >= s->capacity ? 0 : (u32)end;
            continue;
        }
        *word &= ~((1ull << (end & 63)) - (1ull << first));
        h->hand = end + 1 < s->capacity ? (u32)end + 1 : 0;
        return (u32)end;
    }
}

MR_INLINE void lru_hash_release(struct lru_hash *h, const struct shape *s, u32 index)
{
    u8 *entry = table_entry(&h->table, s, 0, index);

    h->lately[index >> 6] &= ~(1ull << (index & 63));
    timers_forget(&h->timers, s, index, table_value(s, entry, 0));
    table_release(&h->table, s, table_token(&h->table, s, table_key(entry, 0)), index);
    notes_add(&h->notes, s, index, 0);
}

/* A new entry's index. Neither key nor value is handed in (README.md). */
MR_OUTLINE u32 lru_hash_claim(struct lru_hash *h, const struct shape *s, u64 token)
{
    u32 index;

    if (h->table.used == s->capacity) {
        h->table.full++;
        lru_hash_release(h, s, lru_hash_victim(h, s));
    }
    index = table_claim(&h->table, s, token);
    notes_add(&h->notes, s, index, NOTES_FRESH);
    return index;
}

MR_OUTLINE void lru_hash_drop(struct lru_hash *h, const struct shape *s, u32 index)
{
    lru_hash_release(h, s, index);
}

/* ---- for the prefetching passes ---- */

MR_INLINE u64 lru_hash_behind(const struct lru_hash *h, const struct shape *s, const u8 *p, s64 least)
{
    return table_behind(&h->table, s, 0, p, least);
}

MR_INLINE u64 lru_hash_token(const struct lru_hash *h, const struct shape *s, const u64 *key)
{
    return table_token(&h->table, s, key);
}

MR_INLINE void lru_hash_prefetch(const struct lru_hash *h, const struct shape *s, u64 token)
{
    (void)s;
    table_prefetch(&h->table, token);
}

MR_INLINE u64 lru_hash_prefetch_entry(const struct lru_hash *h, const struct shape *s, u64 token)
{
    return table_prefetch_entry(&h->table, s, 0, token);
}

MR_INLINE int lru_hash_cold(const struct lru_hash *h, const struct shape *s)
{
    return table_cold(&h->table, s, 0);
}

/* ---- BPF ---- */

MR_INLINE u8 *lru_hash_map_lookup_elem(struct lru_hash *h, const struct shape *s, const u64 *key,
                                       u64 token, struct mr_packet *pkt)
{
    u32 index;
    u8 *entry = table_find(&h->table, s, 0, key, token, &index);

    (void)pkt;
    if (!entry)
        return NULL;
    lru_hash_use(h, index);
    return table_value(s, entry, 0);
}

/* A worker has its own CPU's values only. */
MR_INLINE u8 *lru_hash_map_lookup_percpu_elem(struct lru_hash *h, const struct shape *s, const u64 *key,
                                              u64 token, u64 cpu, struct mr_packet *pkt)
{
    return (u32)cpu == pkt->cpu ? lru_hash_map_lookup_elem(h, s, key, token, pkt) : NULL;
}

MR_INLINE u64 lru_hash_map_update_elem(struct lru_hash *h, const struct shape *s, const u64 *key,
                                       u64 token, const u8 *value, u64 flags, struct mr_packet *pkt)
{
    u32 index;
    u8 *entry;

    (void)pkt;
    if (flags > 2)
        return mr_errno(EINVAL);
    entry = table_find(&h->table, s, 0, key, token, &index);
    if (entry && flags == 1)
        return mr_errno(EEXIST);
    if (entry) {
        lru_hash_use(h, index);
    } else {
        u64 *word;

        if (flags == 2)
            return mr_errno(ENOENT);
        index = lru_hash_claim(h, s, table_hash(&h->table, s, key, token));
        entry = table_entry(&h->table, s, 0, index);
        word = table_key(entry, 0);
        for (u32 i = 0; i < mr_words(s->key_bytes); i++)
            word[i] = key[i];
        mr_allow(table_value(s, entry, 0), s->value_bytes);
    }
    memcpy(table_value(s, entry, 0), value, s->value_bytes);
    notes_add(&h->notes, s, index, 0);
    timers_forget(&h->timers, s, index, table_value(s, entry, 0));
    return 0;
}

MR_INLINE u64 lru_hash_map_delete_elem(struct lru_hash *h, const struct shape *s, const u64 *key,
                                       u64 token, struct mr_packet *pkt)
{
    u32 index;

    (void)pkt;
    if (!table_find(&h->table, s, 0, key, token, &index))
        return mr_errno(ENOENT);
    lru_hash_drop(h, s, index);
    return 0;
}

/* Looking at a place is not use. */
MR_INLINE u8 *lru_hash_map_slot(struct lru_hash *h, const struct shape *s, u64 place, u8 *key,
                                struct mr_packet *pkt)
{
    u8 *entry;

    (void)pkt;
    if (place >= s->capacity || table_is_free(&h->table, (u32)place)) {
        memset(key, 0, s->key_bytes);
        return NULL;
    }
    entry = table_entry(&h->table, s, 0, (u32)place);
    memcpy(key, table_key(entry, 0), s->key_bytes);
    return table_value(s, entry, 0);
}

/* ---- timers ---- */

/* Which entry a value is of, by the address of its timer. */
MR_INLINE u64 lru_hash_place(const struct lru_hash *h, const struct shape *s, const u8 *timer)
{
    return table_place(&h->table, s, 0, timer);
}

TIMER_HELPERS(lru_hash)

/* ---- control, between bursts ---- */

static inline u64 lru_hash_count(struct lru_hash *h, const struct shape *s, u64 now)
{
    (void)s;
    (void)now;
    return h->table.used;
}

static inline u64 lru_hash_used(struct lru_hash *h, const struct shape *s, u64 now)
{
    (void)s;
    (void)now;
    return h->table.used;
}

static inline u64 lru_hash_full(struct lru_hash *h, const struct shape *s, u64 now)
{
    (void)s;
    (void)now;
    return h->table.full;
}

static inline int lru_hash_get(struct lru_hash *h, const struct shape *s, const u8 *key, u8 *value,
                               u64 now)
{
    u64 word[MR_KEY_WORDS_MAX];
    u32 index;
    u8 *entry;

    (void)now;
    mr_pad_key(word, key, s->key_bytes);
    entry = table_find(&h->table, s, 0, word, lru_hash_token(h, s, word), &index);
    if (!entry)
        return -ENOENT;
    memcpy(value, table_value(s, entry, 0), s->value_bytes);
    return 0;
}

static inline int lru_hash_set(struct lru_hash *h, const struct shape *s, const u8 *key,
                               const u8 *value, u64 now)
{
    u64 word[MR_KEY_WORDS_MAX];

    (void)now;
    mr_pad_key(word, key, s->key_bytes);
    lru_hash_map_update_elem(h, s, word, lru_hash_token(h, s, word), value, 0, NULL);
    return 0;
}

static inline int lru_hash_remove(struct lru_hash *h, const struct shape *s, const u8 *key, u64 now)
{
    u64 word[MR_KEY_WORDS_MAX];

    (void)now;
    mr_pad_key(word, key, s->key_bytes);
    return (int)lru_hash_map_delete_elem(h, s, word, lru_hash_token(h, s, word), NULL);
}

static inline int lru_hash_next(struct lru_hash *h, const struct shape *s, u64 *cursor, u8 *key,
                                u8 *value, u64 now)
{
    (void)now;
    for (u64 i = *cursor; i < s->capacity; i++) {
        u8 *entry = table_entry(&h->table, s, 0, (u32)i);

        if (table_is_free(&h->table, (u32)i))
            continue;
        memcpy(key, table_key(entry, 0), s->key_bytes);
        memcpy(value, table_value(s, entry, 0), s->value_bytes);
        *cursor = i + 1;
        return 0;
    }
    *cursor = s->capacity;
    return -ENOENT;
}

/* ---- save and load: the stamp of an entry is its bit, the place of the head is the hand ---- */

static inline int lru_hash_piece(struct lru_hash *h, const struct shape *s, u32 i, struct mr_saved *piece)
{
    u8 *entry = table_entry(&h->table, s, 0, i);

    if (table_is_free(&h->table, i))
        return 0;
    *piece = (struct mr_saved){ .what = MR_SAVED_ENTRY, .place = i, .length = s->value_bytes };
    piece->stamp = h->lately[i >> 6] >> (i & 63) & 1;
    timers_save(&h->timers, s, i, piece);
    piece->key = (const u8 *)table_key(entry, 0);
    piece->value = table_value(s, entry, 0);
    return 1;
}

#define lru_hash_noted_piece lru_hash_piece

MR_INLINE void lru_hash_noted_prefetch(const struct lru_hash *h, const struct shape *s, u32 i)
{
    mr_prefetch(&h->table.link[i]);
    mr_prefetch_range(table_entry(&h->table, s, 0, i), notes_touched(table_stride(s, 0)));
}

NOTES_CHANGES(lru_hash)

/* As hash_list. */
static inline int lru_hash_list(struct lru_hash *h, const struct shape *s, u64 from, u64 to, mr_saved_fn *fn, void *context)
{
    u32 news = h->table.news < TABLE_NEWS ? h->table.news : TABLE_NEWS;
    int lost = h->table.news > TABLE_NEWS, error = 0;
    struct mr_saved piece;

    to = to < s->capacity ? to : s->capacity;
    for (u64 i = from; !error && i < to; i++)
        if (lru_hash_piece(h, s, (u32)i, &piece))
            error = fn(context, &piece);
    for (u32 n = 0; !error && n < news; n++)
        if (lru_hash_piece(h, s, h->table.new[n], &piece))
            error = fn(context, &piece);
    h->table.news = 0;
    return error ? error : lost;
}

/* Where all places are taken another entry gives up its own, as at an insertion. */
static inline int lru_hash_put(struct lru_hash *h, const struct shape *s, const struct mr_saved *piece, u64 now)
{
    struct mr_saved own = *piece;
    u64 key[MR_KEY_WORDS_MAX], token;
    u32 index;

    (void)now;
    if (piece->what != MR_SAVED_ENTRY)
        return -EINVAL;
    mr_pad_key(key, piece->key, s->key_bytes);
    token = lru_hash_token(h, s, key);
    if (lru_hash_map_update_elem(h, s, key, token, piece->value, 1, NULL))
        return -EEXIST;
    table_find(&h->table, s, 0, key, token, &index);
    h->lately[index >> 6] &= ~(1ull << (index & 63));
    if (piece->stamp)
        lru_hash_use(h, index);
    if (timers_any(s) && own.due != UINT64_MAX)
        own.order = h->timers.alarms->started++;
    return timers_load(&h->timers, s, index, table_value(s, table_entry(&h->table, s, 0, index), 0), &own);
}

static inline int lru_hash_save(struct lru_hash *h, const struct shape *s, mr_saved_fn *fn, void *context)
{
    struct mr_saved head = {
        .what = MR_SAVED_HEAD, .place = h->hand, .stamp = h->table.full, .length = s->capacity
    };
    int error;

    timers_save_head(&h->timers, s, &head);
    error = fn(context, &head);
    for (u32 i = 0; !error && i < s->capacity; i++) {
        struct mr_saved piece;

        if (lru_hash_piece(h, s, i, &piece))
            error = fn(context, &piece);
    }
    if (!error)
        error = table_save_free(&h->table, fn, context);
    return error ? error : fn(context, &(struct mr_saved){ .what = MR_SAVED_END });
}

static inline int lru_hash_load(struct lru_hash *h, const struct shape *s, const struct mr_saved *piece, u64 now)
{
    int error;

    (void)now;
    switch (piece->what) {
    case MR_SAVED_HEAD:
        table_load_head(&h->table, s, 0, piece);
        timers_load_head(&h->timers, s, piece);
        memset(h->lately, 0, 8 * mr_round_up(s->capacity, 64) / 64);
        h->hand = piece->place < s->capacity ? (u32)piece->place : 0;
        return 0;
    case MR_SAVED_ENTRY:
        error = table_load_entry(&h->table, s, 0, piece);
        if (error)
            return error;
        if (piece->stamp)
            lru_hash_use(h, (u32)piece->place);
        return timers_load(&h->timers, s, piece->place,
                           table_value(s, table_entry(&h->table, s, 0, (u32)piece->place), 0), piece);
    case MR_SAVED_FREE:
        return table_load_free(&h->table, s, piece);
    case MR_SAVED_END:
        table_load_end(&h->table, s);
        return 0;
    default:
        return -EINVAL;
    }
}

#endif
