/* transact_map_packet: operations on a transact_map by a packet beside others. Included by transact_map.h.
 *
 * Each gives MR_RESTART, or MR_RESTART_NUMBER, where the attempt ends: another core was met (`again`), an entry's expiry has
 * to be decided (`decide`), or the packet must run alone (`crowded`). Of a packet that runs alone they are those of
 * transact_map_alone.h. */
#ifndef MR_TRANSACT_MAP_PACKET_H
#define MR_TRANSACT_MAP_PACKET_H

/* Whether the packet came before the one that wrote an entry last: it runs again, at that one's time. */
MR_INLINE int transact_map_early(struct transact *t, const struct transact_map *m, const struct shape *s, u32 index)
{
    u64 wrote;

    if (!s->timed)
        return 0;
    MR_POINT();
    wrote = __atomic_load_n(transact_map_time(m, s, index), __ATOMIC_RELAXED);
    if (mr_likely(wrote <= t->time) || TRANSACT_FAULT(TRANSACT_FAULT_TIME))
        return 0;
    t->late = wrote;
    t->again = 1;
    TRANSACT_PROFILED(t->met = transact_map_word(m, s, index);)
    return 1;
}

/* Reads what was found, and refreshes it where this is asked for. */
MR_INLINE int transact_map_use(struct transact *t, struct transact_map *m, const struct shape *s,
                               const struct transact_find *f, int refresh)
{
    if (transact_map_early(t, m, s, f->index))
        return 1;
    if (!TRANSACT_FAULT(TRANSACT_FAULT_READS) && transact_read(t, transact_map_word(m, s, f->index), f->seen))
        return 1;
    TRANSACT_LOGGED(t->read[t->reads - 1].timed = s->timed;)
    return refresh && s->expire_after && transact_refresh(t, stamps_at(&m->stamps, t->core, f->index));
}

/* The packet's copy of what was found; its bytes are the value's as they are now. */
MR_INLINE u8 *transact_map_copy(struct transact *t, struct transact_map *m, const struct shape *s,
                                const struct transact_find *f)
{
    struct transact_pending *p = transact_map_pending(t, m, TRANSACT_COPIED, f->index, NULL);
    u8 *copy, *place = transact_map_value(m, s, f->index);

    if (p)
        return p->copy;
    copy = transact_copy(t, s->value_bytes);
    p = copy ? transact_pend(t, TRANSACT_COPIED, m, f->index) : NULL;
    if (mr_unlikely(!p))
        return MR_RESTART;
    p->place = place;
    p->copy = copy;
    p->bytes = s->value_bytes;
    p->time = s->timed ? transact_map_time(m, s, f->index) : NULL;
    p->word = transact_map_word(m, s, f->index);
    p->seen = f->seen;
    transact_get_bytes(copy, place, s->value_bytes);
    return copy;
}

/* Nothing is there: so says the bucket. */
MR_INLINE int transact_map_absent(struct transact *t, const struct transact_find *f)
{
    return !TRANSACT_FAULT(TRANSACT_FAULT_MISSES) && transact_read(t, &f->first->word, f->first_seen);
}

/* Whether the entry is there, when it may have expired: 1, 0, or -1 for another attempt. */
MR_INLINE int transact_map_there(struct transact *t, struct transact_map *m, const struct shape *s,
                                 struct transact_find *f)
{
    if (transact_map_alive(t, m, s, f))
        return 1;
    return TRANSACT_FAULT(TRANSACT_FAULT_JOIN) ? 0 : -1;
}

/* The value of an entry that was found, or NULL if it has expired. `refresh`: as map_refresh; `stores`: the packet may store to it, or read
 * it again after a put. */
MR_INLINE u8 *transact_map_found(struct transact *t, struct transact_map *m, const struct shape *s, struct transact_find *f,
                                 int refresh, int stores)
{
    switch (transact_map_there(t, m, s, f)) {
    case 0:
        return transact_map_use(t, m, s, f, 0) ? MR_RESTART : NULL;
    case -1:
        return MR_RESTART;
    }
    if (transact_map_use(t, m, s, f, refresh))
        return MR_RESTART;
    /* What the packet has put there it finds there. */
    if (stores || mr_unlikely(transact_map_pending(t, m, TRANSACT_COPIED, f->index, NULL) != NULL))
        return transact_map_copy(t, m, s, f);
    return transact_map_value(m, s, f->index);
}

/* The value, or NULL; `refresh` and `stores` as above. */
MR_INLINE u8 *transact_map_get(struct transact *t, struct transact_map *m, const struct shape *s, const u64 *key,
                               u64 token, int refresh, int stores)
{
    struct transact_find f;

    if (mr_unlikely(t->alone))
        return transact_map_alone_get(t, m, s, key, token, refresh);
    switch (transact_map_seek(t, m, s, key, token, &f)) {
    case TRANSACT_MET:
        t->again = 1;
        return MR_RESTART;
    case TRANSACT_OWN:
        return transact_map_value(m, s, f.own->index);
    case TRANSACT_ABSENT:
        return transact_map_absent(t, &f) ? MR_RESTART : NULL;
    case TRANSACT_THERE:
        break;
    }
    return transact_map_found(t, m, s, &f, refresh, stores);
}

/* ---- lookups whose words are in places of the program (sync/transact_few.h); 0: it is for the sets to say ---- */

/* The entry whose word is `seen` is what is sought: its value. `copy`: where the packet has its copy of it; NULL: in place. */
MR_INLINE int transact_map_few_found(const struct transact *t, struct transact_map *m, const struct shape *s, u32 index,
                                     u8 *entry, u64 seen, int refresh, u8 *copy, u64 now, struct transact_few_read *f,
                                     u8 **value)
{
    u8 *place = table_value(s, entry, transact_map_head(s));

    if (s->expire_after) {
        MR_POINT();
        if (mr_unlikely(!transact_stamp_lives(t, m, s, (const u64 *)(entry + 8), index, now)))
            return 0;
    }
    if (s->timed) {
        MR_POINT();
        if (mr_unlikely(__atomic_load_n(transact_map_time(m, s, index), __ATOMIC_RELAXED) > now))
            return 0;
    }
    f->word = (u64 *)entry;
    f->seen = seen;
    f->stamp = refresh && s->expire_after ? stamps_at(&m->stamps, t->core, index) : NULL;
    TRANSACT_PROFILED(f->step = t->step;)
    TRANSACT_LOGGED(f->timed = s->timed;)
    *value = copy ? copy : place;
    __builtin_assume(*value > MR_RESTART);
    if (!copy)
        return 1;
    f->place = place;
    f->copy = copy;
    f->time = s->timed ? transact_map_time(m, s, index) : NULL;
    f->object = m;
    f->index = index;
    f->bytes = s->value_bytes;
    transact_get_bytes(copy, place, s->value_bytes);
    return 1;
}

MR_INLINE int transact_map_few_get(const struct transact *t, struct transact_map *m, const struct shape *s, const u64 *key,
                                   u64 token, int refresh, u8 *copy, u64 now, struct transact_few_read *f, u8 **value)
{
    u64 seen, named = mr_likely(token & TRANSACT_NAMED) ? token : transact_map_named(m, s, token);
    u8 *entry;

    if (mr_unlikely(!(named & TRANSACT_NAMED)))
        return 0;
    entry = transact_map_entry(m, s, (u32)named);
    seen = transact_load((u64 *)entry);
    MR_POINT();
    if (mr_unlikely(seen & (TRANSACT_TAKEN | TRANSACT_GONE) ||
                    !transact_key_equal((u64 *)(entry + transact_map_head(s)), key, mr_words(s->key_bytes))))
        return 0;
    return transact_map_few_found(t, m, s, (u32)named, entry, seen, refresh, copy, now, f, value);
}

/* The core's pool is empty: 1 if nothing is free anywhere before `until`, which the packet then depends on and which is counted; 0 for
 * another attempt, which may be alone. What the packet itself has removed is free for it, and can be had by who is alone only: others may
 * still look at it. */
MR_OUTLINE int transact_map_refused(struct transact *t, struct transact_map *m)
{
    u64 full = transact_load(&m->word);

    for (u32 i = 0; i < t->pendings; i++)
        if (t->pending[i].object == m && t->pending[i].change == TRANSACT_REMOVED && !TRANSACT_FAULT(TRANSACT_FAULT_OWN)) {
            transact_crowd(t, TRANSACT_WHY_POOL);
            return 0;
        }

    if (full & TRANSACT_TAKEN) {
        t->again = 1;
        return 0;
    }
    if (!(full & TRANSACT_FULL) || t->time >= m->until) {
        transact_crowd(t, TRANSACT_WHY_POOL);
        return 0;
    }
    if (!TRANSACT_FAULT(TRANSACT_FAULT_FULLNESS) && transact_read(t, &m->word, full))
        return 0;
    return !transact_effect(t, (struct transact_effect){ TRANSACT_COUNT,
                                                         stamps_at(&m->stamps, t->core, m->stamps.places), 0, 0 });
}

/* A new entry of the core's own pool, filed at commit; its value, NULL if there is no room. */
MR_INLINE u8 *transact_map_insert(struct transact *t, struct transact_map *m, const struct shape *s, const u64 *key,
                                  u64 token, const u8 *value, const struct transact_find *f)
{
    u32 index, effect = t->effects;
    u64 *word;
    struct transact_pending *p;

    if (mr_unlikely(!f->room)) {
        transact_crowd(t, TRANSACT_WHY_BUCKET);
        return MR_RESTART;
    }
    index = pools_take(&m->pools, t->lock, t->core);
    if (mr_unlikely(index == POOLS_NIL))
        return transact_map_refused(t, m) && !transact_map_absent(t, f) ? NULL : MR_RESTART;
    if (transact_effect(t, (struct transact_effect){ TRANSACT_LIVE, &m->pools, index,
                                                     expiry_due(t->time, s->expire_after) })) {
        pools_untake(&m->pools, t->core, index);
        return MR_RESTART;
    }
    token = transact_map_unnamed(m, s, key, token);
    transact_map_fill(m, s, index, key, value, t->time);
    word = transact_map_word(m, s, index);
    if (transact_write(t, &f->first->word, f->first_seen, 0) ||
        transact_effect(t, (struct transact_effect){ TRANSACT_WORD, word, transact_next(t, *word, 0), 0 }) ||
        transact_effect(t, (struct transact_effect){ TRANSACT_WAY, f->room, table_signature(s, token) | index, 0 }) ||
        !(p = transact_pend(t, TRANSACT_INSERTED, m, index)))
        return MR_RESTART;
    p->effect = effect;
    p->way = f->room;
    return transact_map_value(m, s, index);
}

/* As map_put: the value where it is then, NULL if there is no room. */
MR_INLINE u8 *transact_map_put(struct transact *t, struct transact_map *m, const struct shape *s, const u64 *key,
                               u64 token, const u8 *value)
{
    struct transact_find f;
    u8 *to;

    if (mr_unlikely(t->alone))
        return transact_map_alone_put(t, m, s, key, token, value);
    switch (transact_map_seek(t, m, s, key, token, &f)) {
    case TRANSACT_MET:
        t->again = 1;
        return MR_RESTART;
    case TRANSACT_OWN:
        to = transact_map_value(m, s, f.own->index);
        transact_put_bytes(to, value, s->value_bytes);
        return to;
    case TRANSACT_ABSENT:
        return transact_map_insert(t, m, s, key, token, value, &f);
    case TRANSACT_THERE:
        break;
    }
    /* Over what has expired a value is put as over what has not: nothing of it is left, and its stamp is the packet's. */
    if (transact_map_there(t, m, s, &f) < 0 || transact_map_use(t, m, s, &f, 1))
        return MR_RESTART;
    to = transact_map_copy(t, m, s, &f);
    if (to != MR_RESTART)
        memcpy(to, value, s->value_bytes);
    return to;
}

/* As map_delete: 1 if it was there, 0 if not; MR_RESTART_NUMBER. */
MR_INLINE u64 transact_map_delete(struct transact *t, struct transact_map *m, const struct shape *s, const u64 *key,
                                  u64 token)
{
    struct transact_find f;
    struct transact_pending *copied;
    u64 full;

    if (mr_unlikely(t->alone))
        return transact_map_alone_delete(t, m, s, key, token);
    switch (transact_map_seek(t, m, s, key, transact_map_unnamed(m, s, key, token), &f)) {
    case TRANSACT_MET:
        t->again = 1;
        return MR_RESTART_NUMBER;
    case TRANSACT_OWN:
        /* As if it had not been inserted; the place is kept for the packet's time, as it may have a pointer to it. */
        t->effect[f.own->effect].kind = TRANSACT_UNTAKE;
        t->effect[f.own->effect + 1].kind = t->effect[f.own->effect + 2].kind = TRANSACT_NOTHING;
        f.own->change = TRANSACT_CANCELLED;
        return 1;
    case TRANSACT_ABSENT:
        return transact_map_absent(t, &f) ? MR_RESTART_NUMBER : 0;
    case TRANSACT_THERE:
        break;
    }
    if (transact_map_there(t, m, s, &f) < 0)
        return MR_RESTART_NUMBER;
    full = transact_load(&m->word);
    if (!f.first_free || full & TRANSACT_TAKEN) {
        t->again = 1;
        return MR_RESTART_NUMBER;
    }
    copied = transact_map_pending(t, m, TRANSACT_COPIED, f.index, NULL);
    if (copied)
        copied->change = TRANSACT_CANCELLED;
    if (transact_write(t, transact_map_word(m, s, f.index), f.seen, TRANSACT_DEAD) ||
        transact_write(t, &f.first->word, f.first_seen, 0) ||
        (full & TRANSACT_FULL && transact_write(t, &m->word, full, 0)) ||
        transact_effect(t, (struct transact_effect){ TRANSACT_WAY, f.way, 0, 0 }) ||
        transact_effect(t, (struct transact_effect){ TRANSACT_FREE, &m->pools, f.index, 0 }) ||
        !transact_pend(t, TRANSACT_REMOVED, m, f.index))
        return MR_RESTART_NUMBER;
    return 1;
}

#endif
