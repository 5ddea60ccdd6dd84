/* transact_map_alone: operations on a transact_map by a packet that is the only one at work, done at once; what only it
 * can do (longer chains, entries of other pools, reclaiming); and control. Included by transact_map.h.
 *
 * Words are moved on all the same: a core that marked an entry before finds by its word whether that was written, and
 * a history by versions (docs/transact.md) has these writes, too. */
#ifndef MR_TRANSACT_MAP_ALONE_H
#define MR_TRANSACT_MAP_ALONE_H

/* Fills an entry that was taken and that no way leads to. */
MR_INLINE void transact_map_fill(struct transact_map *m, const struct shape *s, u32 index, const u64 *key,
                                 const u8 *value, u64 now)
{
    u64 *to = transact_map_key(m, s, index);

    mr_allow(transact_map_value(m, s, index), s->value_bytes);
    for (u32 i = 0; i < mr_words(s->key_bytes); i++) {
        MR_POINT();
        __atomic_store_n(&to[i], key[i], __ATOMIC_RELAXED);
    }
    transact_put_bytes(transact_map_value(m, s, index), value, s->value_bytes);
    if (s->timed)
        __atomic_store_n(transact_map_time(m, s, index), now, __ATOMIC_RELAXED);
    if (!s->expire_after)
        return;
    __atomic_store_n(transact_map_stamp(m, s, index), now, __ATOMIC_RELAXED);
    transact_stamp_forget(m, index);
}

MR_INLINE void transact_map_touch(struct transact *t, struct transact_map *m, const struct shape *s, u32 index)
{
    u64 *mine = stamps_at(&m->stamps, t->core, index);

    if (s->expire_after && t->time > *mine)
        __atomic_store_n(mine, t->time, __ATOMIC_RELAXED);
}

MR_OUTLINE u8 *transact_map_alone_get(struct transact *t, struct transact_map *m, const struct shape *s, const u64 *key,
                                      u64 token, int refresh)
{
    struct transact_find f;

    if (transact_map_seek(t, m, s, key, token, &f) != TRANSACT_THERE)
        return NULL;
    if (s->expire_after && expiry_over(transact_stamp_joined(m, s, f.index), s->expire_after, t->time)) {
        transact_map_expired(t, m, s, f.index);
        transact_map_remove(t, m, s, f.first, f.way, f.index);
        return NULL;
    }
    if (refresh)
        transact_map_touch(t, m, s, f.index);
    return transact_map_value(m, s, f.index);
}

MR_OUTLINE u64 transact_map_alone_delete(struct transact *t, struct transact_map *m, const struct shape *s,
                                         const u64 *key, u64 token)
{
    struct transact_find f;
    u64 there;

    if (transact_map_seek(t, m, s, key, token, &f) != TRANSACT_THERE)
        return 0;
    there = !s->expire_after || !expiry_over(transact_stamp_joined(m, s, f.index), s->expire_after, t->time);
    transact_map_remove(t, m, s, f.first, f.way, f.index);
    return there;
}

/* Moves the ways of each chain to its beginning and takes away what is empty behind them. A chain of n entries then has
 * ceil(n / ways) buckets, so that all chains together leave a spare one. */
MR_OUTLINE void transact_map_compact(struct transact *t, struct transact_map *m)
{
    for (u32 i = 0; i <= m->mask; i++) {
        struct transact_bucket *to = &m->bucket[i];
        u32 at = 0;

        if (to->next == 0)
            continue;
        transact_move_on(t, &m->bucket[i].word, 0);
        for (struct transact_bucket *from = to;; from = &m->bucket[from->next]) {
            for (u32 w = 0; w < TRANSACT_WAYS; w++) {
                u32 way = from->way[w];

                if (!way)
                    continue;
                if (at == TRANSACT_WAYS) {
                    to = &m->bucket[to->next];
                    at = 0;
                }
                __atomic_store_n(&from->way[w], 0, __ATOMIC_RELAXED);
                __atomic_store_n(&to->way[at++], way, __ATOMIC_RELAXED);
            }
            if (from->next == 0)
                break;
        }
        while (to->next) {
            u32 empty = to->next;

            to->next = m->bucket[empty].next;
            m->bucket[empty].next = m->spare;
            m->spare = empty;
        }
    }
}

/* A vacant way at the end of a chain that has none. */
MR_OUTLINE u32 *transact_map_lengthen(struct transact *t, struct transact_map *m, struct transact_bucket *b)
{
    u32 spare;

    if (m->spare == 0)
        transact_map_compact(t, m);
    while (b->next)
        b = &m->bucket[b->next];
    for (u32 i = 0; i < TRANSACT_WAYS; i++)
        if (b->way[i] == 0)
            return &b->way[i];
    spare = m->spare;
    m->spare = m->bucket[spare].next;
    m->bucket[spare].next = 0;
    b->next = spare;
    return &m->bucket[spare].way[0];
}

/* Removes one entry that has expired, whose ever it is; 0: there is none, and the map is marked full. */
MR_OUTLINE int transact_map_reclaim(struct transact *t, struct transact_map *m, const struct shape *s)
{
    u32 core = 0;

    for (;;) {
        struct expiry *e;
        u64 due = pools_due(&m->pools, &core), key[MR_KEY_WORDS_MAX], token, latest;
        u32 index;

        if (due > t->time || due == UINT64_MAX) {
            transact_move_on(t, &m->word, TRANSACT_FULL);
            m->until = due;
            return 0;
        }
        e = &m->pools.pool[core].expiry;
        index = e->item[0].index;
        latest = transact_stamp_joined(m, s, index);
        if (!expiry_over(latest, s->expire_after, t->time)) {
            expiry_mend(e, expiry_due(latest, s->expire_after));
            continue;
        }
        transact_map_expired(t, m, s, index);
        if (s->numbered) {
            transact_map_remove(t, m, s, NULL, NULL, index);
            return 1;
        }
        mr_pad_key(key, (const u8 *)transact_map_key(m, s, index), s->key_bytes);
        token = transact_map_token(m, s, key);
        transact_map_remove(t, m, s, transact_map_first(m, token),
                            transact_map_way(m, s, transact_map_first(m, token), token, index), index);
        return 1;
    }
}

/* An entry that is free, of whichever pool, or what has expired the longest; POOLS_NIL: there is none, and that is counted. */
MR_OUTLINE u32 transact_map_alone_take(struct transact *t, struct transact_map *m, const struct shape *s)
{
    if (m->pools.pool[t->core].free == POOLS_NIL && !pools_lend(&m->pools, t->core) &&
        !(transact_map_reclaim(t, m, s) && pools_lend(&m->pools, t->core))) {
        ++*stamps_at(&m->stamps, t->core, m->stamps.places);
        return POOLS_NIL;
    }
    return pools_ready_take(&m->pools, t->core);
}

MR_OUTLINE u8 *transact_map_alone_put(struct transact *t, struct transact_map *m, const struct shape *s, const u64 *key,
                                      u64 token, const u8 *value)
{
    struct transact_find f;
    u32 index;
    u64 *word;

    if (transact_map_seek(t, m, s, key, token, &f) == TRANSACT_THERE) {
        transact_move_on(t, transact_map_word(m, s, f.index), 0);
        transact_put_bytes(transact_map_value(m, s, f.index), value, s->value_bytes);
        transact_map_touch(t, m, s, f.index);
        return transact_map_value(m, s, f.index);
    }
    index = transact_map_alone_take(t, m, s);
    if (index == POOLS_NIL)
        return NULL;
    token = transact_map_unnamed(m, s, key, token);
    if (!f.room)
        f.room = transact_map_lengthen(t, m, f.first);
    transact_map_fill(m, s, index, key, value, t->time);
    word = transact_map_word(m, s, index);
    transact_move_on(t, word, 0);
    __atomic_store_n(f.room, table_signature(s, token) | index, __ATOMIC_RELEASE);
    transact_move_on(t, &f.first->word, 0);
    pools_live(&m->pools, t->core, index, expiry_due(t->time, s->expire_after));
    return transact_map_value(m, s, index);
}

/* ---- control, by who holds all lines ---- */

/* Whether there is an entry at a place that has not expired at `now`. */
MR_INLINE int transact_map_lives(const struct transact_map *m, const struct shape *s, u64 place, u64 now)
{
    return place < s->capacity && !(*transact_map_word(m, s, (u32)place) & TRANSACT_DEAD) &&
           !(s->expire_after && expiry_over(transact_stamp_joined(m, s, (u32)place), s->expire_after, now));
}

/* The next entry that has not expired at `now`, from the place `cursor`; -ENOENT: there is none. */
static inline int transact_map_next(struct transact_map *m, const struct shape *s, u64 *cursor, u8 *key, u8 *value,
                                    u64 now)
{
    for (u64 i = *cursor; i < s->capacity; i++) {
        if (!transact_map_lives(m, s, i, now))
            continue;
        memcpy(key, transact_map_key(m, s, (u32)i), s->key_bytes);
        memcpy(value, transact_map_value(m, s, (u32)i), s->value_bytes);
        *cursor = i + 1;
        return 0;
    }
    *cursor = s->capacity;
    return -ENOENT;
}

/* How often an entry was wanted and none was free. */
MR_INLINE u64 transact_map_full(const struct transact_map *m) { return stamps_refused(&m->stamps); }

#endif
