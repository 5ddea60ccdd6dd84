/* hash: entries by key. Serves the handlers' `map` and BPF's HASH and PERCPU_HASH (one instance is
 * one CPU).
 *
 * Contract. Exactly `capacity` entries fit. An entry is absent from the moment its age reaches
 * `expire_after`, at any access, and a place held by such an entry counts as free; when it is
 * reclaimed cannot be observed. Where its expiry is an event (timers.h) it is there until that fires, at that moment. Time is the packet's; should it go back, a stamp does not: the age
 * of an entry stamped later is 0 (and an entry that had expired may be there again, if it was not
 * reclaimed: a host that wants runs to agree hands in time that does not go back).
 *
 * At capacity: `map_put` returns null, `map_update_elem` -E2BIG.
 *
 * Pointers to values stay readable and writable until the instance ends; after a delete they show
 * the old value until the place is taken again. `map_update_elem` overwrites in place, where the
 * kernel's (not per-CPU) map switches to another place: there, a pointer from before the update
 * keeps showing the old value.
 *
 * Cost: a bucket line and an entry line a lookup (table.h). Insertion, deletion and reclaiming are
 * out of line; expiry.h says why none of them scans.
 *
 * Memory: bytes = mapped(table(head) + expiry), head 8 and expiry as in expiry.h when
 * `expire_after` > 0, else both 0; table as in table.h; mapped as in base.h. Timers as in timers.h.
 * Shared: and that of stamps.h. Noted: and that of notes.h.
 *
 * Shared: these functions are for who has all lines of the lock; sync/hash.h is for who has one.
 */
#ifndef MR_HASH_H
#define MR_HASH_H

#include "../sync/stamps.h"
#include "expiry.h"
#include "notes.h"
#include "table.h"
#include "timer_helpers.h"

#define HASH_BPF_ANY 0
#define HASH_BPF_NOEXIST 1
#define HASH_BPF_EXIST 2

struct hash {
    struct table table;
    struct expiry expiry;
    struct timers timers;
    struct stamps stamps; /* of shared ones: by the entry's place, if they expire */
    struct notes notes;
};

MR_INLINE u32 hash_head(const struct shape *s) { return s->expire_after ? 8 : 0; }

/* Whether expired entries are reclaimed when their places are wanted; else each has an event. */
MR_INLINE int hash_queued(const struct shape *s) { return s->expire_after && !s->event; }

MR_INLINE u64 hash_part(const struct shape *s)
{
    return table_part(s, hash_head(s)) + (hash_queued(s) ? expiry_part(s) : 0);
}

MR_INLINE u64 hash_bytes(const struct shape *s)
{
    return mr_mapped_bytes(hash_part(s)) + timers_bytes(s);
}

static inline int hash_create(struct hash *h, const struct shape *s, const struct mr_config *config,
                              const u8 *initial)
{
    int error = table_valid(s);
    u8 *memory;

    (void)initial;
    *h = (struct hash){0};
    if (error)
        return error;
    memory = mr_map_memory(hash_part(s));
    if (!memory)
        return -ENOMEM;
    table_create(&h->table, s, hash_head(s), config->hash_seed, &memory);
    if (hash_queued(s))
        expiry_create(&h->expiry, s, h->table.link, &memory);
    error = timers_create(&h->timers, s);
    if (!error && s->shared) {
        error = stamps_create(&h->stamps, s->expire_after ? s->capacity : 0, config->workers);
        if (error)
            timers_destroy(&h->timers, s);
    }
    if (!error && s->noted) {
        error = notes_create(&h->notes, s);
        if (error)
            timers_destroy(&h->timers, s);
    }
    if (error)
        mr_unmap_memory(h->table.bucket, hash_part(s));
    return error;
}

/* The buckets are the first part of the mapping. */
static inline void hash_destroy(struct hash *h, const struct shape *s)
{
    mr_unmap_memory(h->table.bucket, hash_part(s));
    timers_destroy(&h->timers, s);
    if (s->shared)
        stamps_destroy(&h->stamps);
    notes_destroy(&h->notes, s);
    *h = (struct hash){0};
}

/* ---- entries ---- */

MR_INLINE u64 *hash_stamp(u8 *entry) { return (u64 *)entry; }

MR_INLINE int hash_expired(const struct hash *h, const struct shape *s, u8 *entry, u64 now)
{
    if (s->expire_after && s->shared)
        stamps_join(&h->stamps, table_place(&h->table, s, hash_head(s), entry), hash_stamp(entry));
    return hash_queued(s) && expiry_over(*hash_stamp(entry), s->expire_after, now);
}

MR_INLINE u32 hash_index(const struct hash *h, const struct shape *s, const u8 *inside)
{
    return table_place(&h->table, s, hash_head(s), inside);
}

MR_INLINE void hash_touch(struct hash *h, const struct shape *s, u8 *entry, u64 now)
{
    if (s->expire_after && now > *hash_stamp(entry)) {
        if (s->noted)
            notes_refresh(&h->notes, s, hash_index(h, s, entry), *hash_stamp(entry), now);
        *hash_stamp(entry) = now;
    }
}

/* A value that `p` points into is written. */
MR_INLINE void hash_written(struct hash *h, const struct shape *s, const u8 *p)
{
    notes_add(&h->notes, s, hash_index(h, s, p), 0);
}

/* The entry with this key if it is there, NULL if it is not or has expired. */
MR_INLINE u8 *hash_find(struct hash *h, const struct shape *s, const u64 *key, u64 token, u64 now)
{
    u32 index;
    u8 *entry = table_find(&h->table, s, hash_head(s), key, token, &index);

    return entry && !hash_expired(h, s, entry, now) ? entry : NULL;
}

MR_INLINE void hash_release(struct hash *h, const struct shape *s, u32 index)
{
    u8 *entry = table_entry(&h->table, s, hash_head(s), index);
    u64 token = table_token(&h->table, s, table_key(entry, hash_head(s)));

    if (hash_queued(s))
        expiry_remove(&h->expiry, index);
    timers_disarm(&h->timers, s, index);
    timers_forget(&h->timers, s, index, table_value(s, entry, hash_head(s)));
    table_release(&h->table, s, token, index);
    notes_add(&h->notes, s, index, 0);
}

/* Looks at up to `budget` entries whose bound has come; stops after releasing `enough`. */
MR_OUTLINE void hash_reclaim(struct hash *h, const struct shape *s, u64 now, u64 budget, u64 enough)
{
    for (; budget > 0 && enough > 0 && expiry_any(&h->expiry, now); budget--) {
        u32 index = h->expiry.item[0].index;
        u8 *entry = table_entry(&h->table, s, hash_head(s), index);

        if (hash_expired(h, s, entry, now)) {
            hash_release(h, s, index);
            enough--;
        } else {
            expiry_mend(&h->expiry, expiry_due(*hash_stamp(entry), s->expire_after));
        }
    }
}

/* A new entry's index, its stamp and bound set, or MR_NONE: full. Neither key nor value is handed
 * in, so that the caller's can stay in registers. */
MR_OUTLINE u32 hash_claim(struct hash *h, const struct shape *s, u64 token, u64 now)
{
    u32 index;

    if (hash_queued(s) && h->table.used == s->capacity)
        hash_reclaim(h, s, now, UINT64_MAX, 1);
    index = table_claim(&h->table, s, token);
    if (s->noted && index != MR_NONE)
        notes_add(&h->notes, s, index, NOTES_FRESH);
    if (s->expire_after && index != MR_NONE) {
        *hash_stamp(table_entry(&h->table, s, hash_head(s), index)) = now;
        if (s->shared)
            stamps_forget(&h->stamps, index);
        if (s->event)
            timers_arm(&h->timers, s, index, expiry_due(now, s->expire_after));
        else
            expiry_push(&h->expiry, index, expiry_due(now, s->expire_after));
    }
    return index;
}

MR_OUTLINE void hash_drop(struct hash *h, const struct shape *s, u32 index)
{
    hash_release(h, s, index);
}

/* Stores under a key that `entry` has, or that no entry has when it is NULL. */
MR_INLINE u8 *hash_store(struct hash *h, const struct shape *s, u8 *entry, const u64 *key, u64 token,
                         const u8 *value, u64 now)
{
    u32 head = hash_head(s);

    if (mr_unlikely(!entry)) {
        u32 index = hash_claim(h, s, table_hash(&h->table, s, key, token), now);
        u64 *word;

        if (mr_unlikely(index == MR_NONE))
            return NULL;
        entry = table_entry(&h->table, s, head, index);
        word = table_key(entry, head);
        for (u32 i = 0; i < mr_words(s->key_bytes); i++)
            word[i] = key[i];
        mr_allow(table_value(s, entry, head), s->value_bytes);
    }
    hash_touch(h, s, entry, now);
    hash_written(h, s, entry);
    memcpy(table_value(s, entry, head), value, s->value_bytes);
    timers_forget(&h->timers, s, table_place(&h->table, s, hash_head(s), entry), table_value(s, entry, head));
    return table_value(s, entry, head);
}

/* ---- for the prefetching passes ---- */

MR_INLINE u64 hash_behind(const struct hash *h, const struct shape *s, const u8 *p, s64 least)
{
    return table_behind(&h->table, s, hash_head(s), p, least);
}

MR_INLINE u64 hash_token(const struct hash *h, const struct shape *s, const u64 *key)
{
    return table_token(&h->table, s, key);
}

MR_INLINE void hash_prefetch(const struct hash *h, const struct shape *s, u64 token)
{
    (void)s;
    table_prefetch(&h->table, token);
}

MR_INLINE u64 hash_prefetch_entry(const struct hash *h, const struct shape *s, u64 token)
{
    return table_prefetch_entry(&h->table, s, hash_head(s), token);
}

/* The same where cores share it, with the core's own stamp of the entry, which a refresh writes and every look reads. */
MR_INLINE u64 hash_prefetch_entry_of(const struct hash *h, const struct shape *s, u64 token, u32 core)
{
    u64 found = hash_prefetch_entry(h, s, token);

    /* The lower half is the entry's index then. */
    if (s->expire_after && found >> 63)
        mr_prefetch(stamps_at(&h->stamps, core, (u32)found));
    return found;
}

MR_INLINE int hash_cold(const struct hash *h, const struct shape *s)
{
    return table_cold(&h->table, s, hash_head(s));
}

/* Whether there is something for `age` to look at. */
MR_INLINE int hash_due(const struct hash *h, const struct shape *s, u64 now)
{
    return hash_queued(s) && expiry_any(&h->expiry, expiry_late(s->expire_after, now));
}

MR_INLINE void hash_age(struct hash *h, const struct shape *s, u64 now)
{
    if (mr_unlikely(hash_due(h, s, now)))
        hash_reclaim(h, s, expiry_late(s->expire_after, now), EXPIRY_BUDGET, UINT64_MAX);
}

/* ---- handlers ---- */

MR_INLINE u8 *hash_map_get(struct hash *h, const struct shape *s, const u64 *key, u64 token,
                           struct mr_packet *pkt)
{
    u8 *entry = hash_find(h, s, key, token, pkt->time);

    return entry ? table_value(s, entry, hash_head(s)) : NULL;
}

MR_INLINE u8 *hash_map_refresh(struct hash *h, const struct shape *s, const u64 *key, u64 token,
                               struct mr_packet *pkt)
{
    u8 *entry = hash_find(h, s, key, token, pkt->time);

    if (!entry)
        return NULL;
    hash_touch(h, s, entry, pkt->time);
    return table_value(s, entry, hash_head(s));
}

/* An expired entry is overwritten as if it were new: nothing of it is left. */
MR_INLINE u8 *hash_map_put(struct hash *h, const struct shape *s, const u64 *key, u64 token,
                           const u8 *value, struct mr_packet *pkt)
{
    u32 index;
    u8 *entry = table_find(&h->table, s, hash_head(s), key, token, &index);

    return hash_store(h, s, entry, key, token, value, pkt->time);
}

MR_INLINE u64 hash_map_delete(struct hash *h, const struct shape *s, const u64 *key, u64 token,
                              struct mr_packet *pkt)
{
    u32 index;
    u8 *entry = table_find(&h->table, s, hash_head(s), key, token, &index);
    u64 there;

    if (!entry)
        return 0;
    there = !hash_expired(h, s, entry, pkt->time);
    hash_drop(h, s, index);
    return there;
}

/* ---- BPF ---- */

MR_INLINE u8 *hash_map_lookup_elem(struct hash *h, const struct shape *s, const u64 *key, u64 token,
                                   struct mr_packet *pkt)
{
    return hash_map_get(h, s, key, token, pkt);
}

/* A worker has its own CPU's values only. */
MR_INLINE u8 *hash_map_lookup_percpu_elem(struct hash *h, const struct shape *s, const u64 *key,
                                          u64 token, u64 cpu, struct mr_packet *pkt)
{
    return (u32)cpu == pkt->cpu ? hash_map_lookup_elem(h, s, key, token, pkt) : NULL;
}

MR_INLINE u64 hash_map_update_elem(struct hash *h, const struct shape *s, const u64 *key, u64 token,
                                   const u8 *value, u64 flags, struct mr_packet *pkt)
{
    u32 index;
    u8 *entry;

    if (flags > HASH_BPF_EXIST)
        return mr_errno(EINVAL);
    entry = table_find(&h->table, s, hash_head(s), key, token, &index);
    if (entry && flags == HASH_BPF_NOEXIST)
        return mr_errno(EEXIST);
    if (!entry && flags == HASH_BPF_EXIST)
        return mr_errno(ENOENT);
    return hash_store(h, s, entry, key, token, value, pkt->time) ? 0 : mr_errno(E2BIG);
}

MR_INLINE u64 hash_map_delete_elem(struct hash *h, const struct shape *s, const u64 *key, u64 token,
                                   struct mr_packet *pkt)
{
    return hash_map_delete(h, s, key, token, pkt) ? 0 : mr_errno(ENOENT);
}

/* An entry keeps its place in the slab for as long as it is there. */
MR_INLINE u8 *hash_map_slot(struct hash *h, const struct shape *s, u64 place, u8 *key,
                            struct mr_packet *pkt)
{
    u8 *entry = NULL;

    if (place < s->capacity && !table_is_free(&h->table, (u32)place))
        entry = table_entry(&h->table, s, hash_head(s), (u32)place);
    if (!entry || hash_expired(h, s, entry, pkt->time)) {
        memset(key, 0, s->key_bytes);
        return NULL;
    }
    memcpy(key, table_key(entry, hash_head(s)), s->key_bytes);
    return table_value(s, entry, hash_head(s));
}

/* ---- timers ---- */

/* Which entry a value is of, by the address of its timer. */
MR_INLINE u64 hash_place(const struct hash *h, const struct shape *s, const u8 *timer)
{
    return table_place(&h->table, s, hash_head(s), timer);
}

TIMER_HELPERS(hash)

/* When the entry at this place expires if nothing refreshes it any more; of those whose expiry is an event. */
MR_INLINE u64 hash_latest(struct hash *h, const struct shape *s, u32 place)
{
    u64 *stamp = hash_stamp(table_entry(&h->table, s, hash_head(s), place));

    if (s->shared)
        stamps_join(&h->stamps, place, stamp);
    return expiry_due(*stamp, s->expire_after);
}

/* ---- control, between bursts ---- */

static inline u64 hash_count(struct hash *h, const struct shape *s, u64 now)
{
    u64 count = 0;

    if (!hash_queued(s))
        return h->table.used;
    for (u32 i = 0; i < s->capacity; i++)
        count += !table_is_free(&h->table, i) &&
                 !hash_expired(h, s, table_entry(&h->table, s, hash_head(s), i), now);
    return count;
}

static inline u64 hash_used(struct hash *h, const struct shape *s, u64 now)
{
    (void)s;
    (void)now;
    return h->table.used;
}

static inline u64 hash_full(struct hash *h, const struct shape *s, u64 now)
{
    (void)s;
    (void)now;
    return h->table.full + stamps_refused(&h->stamps);
}

static inline int hash_get(struct hash *h, const struct shape *s, const u8 *key, u8 *value, u64 now)
{
    u64 word[MR_KEY_WORDS_MAX];
    u8 *entry;

    mr_pad_key(word, key, s->key_bytes);
    entry = hash_find(h, s, word, hash_token(h, s, word), now);
    if (!entry)
        return -ENOENT;
    memcpy(value, table_value(s, entry, hash_head(s)), s->value_bytes);
    return 0;
}

static inline int hash_set(struct hash *h, const struct shape *s, const u8 *key, const u8 *value,
                           u64 now)
{
    u64 word[MR_KEY_WORDS_MAX];
    u64 token;
    u32 index;
    u8 *entry;

    mr_pad_key(word, key, s->key_bytes);
    token = hash_token(h, s, word);
    entry = table_find(&h->table, s, hash_head(s), word, token, &index);
    return hash_store(h, s, entry, word, token, value, now) ? 0 : -E2BIG;
}

static inline int hash_remove(struct hash *h, const struct shape *s, const u8 *key, u64 now)
{
    u64 word[MR_KEY_WORDS_MAX];
    u64 there;
    u32 index;
    u8 *entry;

    mr_pad_key(word, key, s->key_bytes);
    entry = table_find(&h->table, s, hash_head(s), word, hash_token(h, s, word), &index);
    if (!entry)
        return -ENOENT;
    there = !hash_expired(h, s, entry, now);
    hash_drop(h, s, index);
    return there ? 0 : -ENOENT;
}

static inline int hash_next(struct hash *h, const struct shape *s, u64 *cursor, u8 *key, u8 *value,
                            u64 now)
{
    for (u64 i = *cursor; i < s->capacity; i++) {
        u8 *entry = table_entry(&h->table, s, hash_head(s), (u32)i);

        if (table_is_free(&h->table, (u32)i) || hash_expired(h, s, entry, now))
            continue;
        memcpy(key, table_key(entry, hash_head(s)), s->key_bytes);
        memcpy(value, table_value(s, entry, hash_head(s)), s->value_bytes);
        *cursor = i + 1;
        return 0;
    }
    *cursor = s->capacity;
    return -ENOENT;
}

/* ---- save and load ---- */

/* Entry `i` as a piece; 0 where the place is free. */
static inline int hash_piece(struct hash *h, const struct shape *s, u32 i, struct mr_saved *piece)
{
    u8 *entry = table_entry(&h->table, s, hash_head(s), i);

    if (table_is_free(&h->table, i))
        return 0;
    *piece = (struct mr_saved){ .what = MR_SAVED_ENTRY, .place = i };
    if (s->expire_after) {
        if (s->shared)
            stamps_join(&h->stamps, i, hash_stamp(entry));
        piece->stamp = *hash_stamp(entry);
        piece->bound = s->event ? h->timers.timer[i].due : h->expiry.item[h->expiry.place[i]].due;
    }
    timers_save(&h->timers, s, i, piece);
    piece->key = (const u8 *)table_key(entry, hash_head(s));
    piece->value = table_value(s, entry, hash_head(s));
    piece->length = s->value_bytes;
    return 1;
}

/* As much of it as a row has: when the entry expires is in two more lines. */
static inline int hash_noted_piece(struct hash *h, const struct shape *s, u32 i, struct mr_saved *piece)
{
    u8 *entry = table_entry(&h->table, s, hash_head(s), i);

    if (table_is_free(&h->table, i))
        return 0;
    *piece = (struct mr_saved){ .what = MR_SAVED_ENTRY, .place = i };
    if (s->expire_after)
        piece->stamp = *hash_stamp(entry);
    piece->key = (const u8 *)table_key(entry, hash_head(s));
    piece->value = table_value(s, entry, hash_head(s));
    return 1;
}

MR_INLINE void hash_noted_prefetch(const struct hash *h, const struct shape *s, u32 i)
{
    mr_prefetch(&h->table.link[i]);
    mr_prefetch_range(table_entry(&h->table, s, hash_head(s), i), notes_touched(table_stride(s, hash_head(s))));
}

NOTES_CHANGES(hash)

/* An entry is told at least once that is there when the last place was listed, whatever came and went between the calls; its place may
 * have been another one's before. */
static inline int hash_list(struct hash *h, const struct shape *s, u64 from, u64 to, mr_saved_fn *fn, void *context)
{
    u32 news = h->table.news < TABLE_NEWS ? h->table.news : TABLE_NEWS;
    int lost = h->table.news > TABLE_NEWS, error = 0;
    struct mr_saved piece;

    to = to < s->capacity ? to : s->capacity;
    for (u64 i = from; !error && i < to; i++)
        if (hash_piece(h, s, (u32)i, &piece))
            error = fn(context, &piece);
    for (u32 n = 0; !error && n < news; n++)
        if (hash_piece(h, s, h->table.new[n], &piece))
            error = fn(context, &piece);
    h->table.news = 0;
    return error ? error : lost;
}

static inline int hash_load_event(struct hash *h, const struct shape *s, const struct mr_saved *piece, u64 stamp);

/* A timer of another instance is the last one that was started here. */
static inline int hash_put(struct hash *h, const struct shape *s, const struct mr_saved *piece, u64 now)
{
    u32 head = hash_head(s), index;
    u64 key[MR_KEY_WORDS_MAX], token, *word;
    struct mr_saved own = *piece;
    u8 *entry;

    if (piece->what != MR_SAVED_ENTRY)
        return -EINVAL;
    mr_pad_key(key, piece->key, s->key_bytes);
    token = table_hash(&h->table, s, key, hash_token(h, s, key));
    entry = table_find(&h->table, s, head, key, token, &index);
    if (entry && !hash_expired(h, s, entry, now))
        return -EEXIST;
    if (entry)
        hash_drop(h, s, index);
    if (hash_queued(s) && h->table.used == s->capacity)
        hash_reclaim(h, s, now, UINT64_MAX, 1);
    if (h->table.used == s->capacity)
        return -E2BIG;
    index = table_claim(&h->table, s, token);
    notes_add(&h->notes, s, index, NOTES_FRESH);
    entry = table_entry(&h->table, s, head, index);
    word = table_key(entry, head);
    for (u32 i = 0; i < mr_words(s->key_bytes); i++)
        word[i] = key[i];
    mr_allow(table_value(s, entry, head), s->value_bytes);
    memcpy(table_value(s, entry, head), piece->value, s->value_bytes);
    own.place = index;
    if (timers_any(s) && own.due != UINT64_MAX)
        own.order = h->timers.alarms->started++;
    if (s->expire_after) {
        u64 stamp = piece->bound ? piece->stamp : now;

        *hash_stamp(entry) = stamp;
        if (s->shared)
            stamps_forget(&h->stamps, index);
        if (s->event)
            return hash_load_event(h, s, &own, stamp);
        expiry_load(&h->expiry, s, index, stamp, piece->bound);
    }
    return timers_load(&h->timers, s, index, table_value(s, entry, head), &own);
}

static inline int hash_save(struct hash *h, const struct shape *s, mr_saved_fn *fn, void *context)
{
    struct mr_saved head = { .what = MR_SAVED_HEAD, .stamp = hash_full(h, s, 0), .length = s->capacity };
    int error;

    timers_save_head(&h->timers, s, &head);
    error = fn(context, &head);
    /* Places are taken from the first on, so that few entries in a large table are found early. */
    for (u32 i = 0, left = h->table.used; !error && left > 0 && i < s->capacity; i++) {
        struct mr_saved piece;

        if (hash_piece(h, s, i, &piece)) {
            error = fn(context, &piece);
            left--;
        }
    }
    if (!error)
        error = table_save_free(&h->table, fn, context);
    return error ? error : fn(context, &(struct mr_saved){ .what = MR_SAVED_END });
}

/* Of an entry whose expiry is an event: in the order in which those of one moment were put, where that is said. */
static inline int hash_load_event(struct hash *h, const struct shape *s, const struct mr_saved *piece, u64 stamp)
{
    u32 index = (u32)piece->place;
    struct mr_saved own = *piece;

    if (piece->bound && piece->callback && piece->due != UINT64_MAX) {
        own.callback = s->event + 1;
        return timers_load(&h->timers, s, index, NULL, &own);
    }
    timers_arm(&h->timers, s, index, expiry_due(stamp, s->expire_after));
    return 0;
}

static inline int hash_load(struct hash *h, const struct shape *s, const struct mr_saved *piece, u64 now)
{
    u32 index = (u32)piece->place;
    int error;

    switch (piece->what) {
    case MR_SAVED_HEAD:
        table_load_head(&h->table, s, hash_head(s), piece);
        timers_load_head(&h->timers, s, piece);
        stamps_clear(&h->stamps);
        h->expiry.count = 0;
        return 0;
    case MR_SAVED_ENTRY:
        error = table_load_entry(&h->table, s, hash_head(s), piece);
        if (error)
            return error;
        if (s->expire_after) {
            u64 stamp = piece->bound ? piece->stamp : now;

            *hash_stamp(table_entry(&h->table, s, hash_head(s), index)) = stamp;
            if (s->event)
                return hash_load_event(h, s, piece, stamp);
            expiry_load(&h->expiry, s, index, stamp, piece->bound);
        }
        return timers_load(&h->timers, s, index,
                           table_value(s, table_entry(&h->table, s, hash_head(s), index), hash_head(s)), piece);
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
