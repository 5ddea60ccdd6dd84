/* transact_map: entries by key, in common to cores whose packets are transactions (sync/transact.h).
 *
 * Contract: that of hash.h (capacity, expiry, pointers to values), for packets one after the other in the order in which
 * they commit, and with the expiry of an entry as an event of that order: an entry is there until some core, at a
 * time at which its age has reached `expire_after`, meets it or reclaims it. A packet whose time is earlier and which
 * commits later does not find it any more; none finds an entry that is over at its own time.
 *
 * A bucket is one cache line: its version word, thirteen ways as in table.h, and the next bucket of its chain. Ways may be
 * vacant anywhere. The word of a chain's first bucket covers all ways of the chain; only who is alone lengthens or
 * shortens chains, so that a packet may follow one without looking twice. An entry begins with its version word and, if
 * it expires, its stamp, and where programs compute with the time, the time of its last writer; key and value follow.
 *
 * - Hit: the entry's word is read. A dead entry or one that is taken: another attempt.
 * - Miss: the bucket's word is read, from before its ways were looked at.
 * - A value that the packet may store to is copied, and written back if it differs in the end.
 * - Insertion: an entry of the core's own pool, filled at once and filed at commit; the bucket's word is written.
 * - Removal: the entry's word and the bucket's are written; where the map is marked full, the map's word, too.
 * - Refresh: the core's own stamp (sync/stamps.h), after the packet's words were validated.
 * - Expiry: what the entry's stamp and the core's own keep alive is alive. Of another entry the core marks the word as
 *   dying, waits until each other core's packet at hand is over, and joins all stamps: no packet that read the word
 *   before the mark can commit now, and the stamps of those that did are there. Then the entry is removed, or lives.
 * - Full: who finds its pool empty runs alone, has half of the fullest pool, or reclaims what has expired. If there
 *   is nothing, the map's word is marked full, with the time at which the soonest entry may expire. Until then packets
 *   that need room read that word and are refused; who removes an entry writes it.
 * - Alone: a full chain, an empty pool, or what does not fit a packet's sets.
 *
 * Where the shape is `numbered` an entry is found by its number and there are no buckets: transact_leases.h.
 *
 * Memory: mapped(buckets + slab), 64 * (power_of_two(ceil(capacity / 8)) + capacity / 13 + 1) and stride * capacity, and
 * pools.h, and stamps.h. stride: as in table.h with a head of 8, 8 more for entries that expire, and 8 more for times.
 */
#ifndef MR_TRANSACT_MAP_H
#define MR_TRANSACT_MAP_H

#include "../sync/transact.h"
#include "table.h"

#ifndef TRANSACT_WAYS
#define TRANSACT_WAYS 13u
#endif

/* What keeps a packet from using an entry. */
#define TRANSACT_GONE                                                                                                   \
    ((TRANSACT_FAULT(TRANSACT_FAULT_DEAD) ? 0 : TRANSACT_DEAD) | (TRANSACT_FAULT(TRANSACT_FAULT_MARK) ? 0 : TRANSACT_DYING))

/* Entries whose expiry one grace decides. */
#define TRANSACT_BATCH 16u

struct transact_bucket {
    u64 word;
    u32 next; /* 0: the last */
    u32 way[TRANSACT_WAYS];
} __attribute__((aligned(64)));

struct transact_map {
    struct mr_secret secret;
    struct transact_bucket *bucket;
    u8 *slab;
    u32 mask;
    u32 spare; /* list of buckets; alone */
    struct pools pools;
    struct stamps stamps;
    u64 word __attribute__((aligned(64))); /* TRANSACT_FULL: there is no room before `until`, unless it is written */
    u64 until;                             /* ns; written alone */
};

MR_INLINE u32 transact_map_head(const struct shape *s) { return (s->expire_after ? 16 : 8) + (s->timed ? 8 : 0); }

MR_INLINE u64 transact_map_spares(const struct shape *s) { return s->capacity / TRANSACT_WAYS + 1; }

MR_INLINE u64 transact_map_buckets(const struct shape *s)
{
    return s->numbered ? 0 : sizeof(struct transact_bucket) * (table_primaries(s) + transact_map_spares(s));
}

MR_INLINE u64 transact_map_part(const struct shape *s)
{
    return mr_part(transact_map_buckets(s)) + mr_part(table_stride(s, transact_map_head(s)) * s->capacity);
}

MR_INLINE u64 transact_map_bytes(const struct shape *s, u32 cores)
{
    return mr_mapped_bytes(transact_map_part(s)) + mr_mapped_bytes(pools_part(s, cores)) +
           stamps_bytes(s->expire_after ? s->capacity : 0, cores);
}

MR_INLINE u8 *transact_map_entry(const struct transact_map *m, const struct shape *s, u32 index)
{
    return m->slab + (u64)index * table_stride(s, transact_map_head(s));
}

MR_INLINE u64 *transact_map_word(const struct transact_map *m, const struct shape *s, u32 index)
{
    return (u64 *)transact_map_entry(m, s, index);
}

MR_INLINE u64 *transact_map_stamp(const struct transact_map *m, const struct shape *s, u32 index)
{
    return (u64 *)(transact_map_entry(m, s, index) + 8);
}

/* ns, of the packet that wrote it last; of maps that have it. */
MR_INLINE u64 *transact_map_time(const struct transact_map *m, const struct shape *s, u32 index)
{
    return (u64 *)(transact_map_entry(m, s, index) + transact_map_head(s) - 8);
}

MR_INLINE u64 *transact_map_key(const struct transact_map *m, const struct shape *s, u32 index)
{
    return (u64 *)(transact_map_entry(m, s, index) + transact_map_head(s));
}

MR_INLINE u8 *transact_map_value(const struct transact_map *m, const struct shape *s, u32 index)
{
    return table_value(s, transact_map_entry(m, s, index), transact_map_head(s));
}

/* Of a map without entries. */
MR_INLINE void transact_map_spare_list(struct transact_map *m, const struct shape *s)
{
    u32 primaries = m->mask + 1, spares = (u32)transact_map_spares(s);

    if (s->numbered)
        return;
    m->spare = primaries;
    for (u32 i = 0; i < spares; i++)
        m->bucket[primaries + i].next = i + 1 < spares ? primaries + i + 1 : 0;
}

static inline int transact_map_create(struct transact_map *m, const struct shape *s, const struct mr_config *config)
{
    int error = table_valid(s);
    u32 primaries;
    u8 *memory;

    *m = (struct transact_map){0};
    if (error)
        return error;
    error = pools_create(&m->pools, s, config->workers);
    if (error)
        return error;
    m->pools.queues = s->numbered;
    memory = (u8 *)mr_map_memory(transact_map_part(s));
    error = memory ? stamps_create(&m->stamps, s->expire_after ? s->capacity : 0, config->workers) : -ENOMEM;
    if (error) {
        mr_unmap_memory(memory, transact_map_part(s));
        pools_destroy(&m->pools);
        return error;
    }
    primaries = (u32)table_primaries(s);
    m->secret = mr_secret(config->hash_seed);
    m->mask = primaries - 1;
    m->bucket = (struct transact_bucket *)mr_take(&memory, transact_map_buckets(s));
    m->slab = memory;
    transact_map_spare_list(m, s);
    for (u32 i = 0; i < s->capacity; i++)
        *transact_map_word(m, s, i) = TRANSACT_DEAD;
    return 0;
}

static inline void transact_map_destroy(struct transact_map *m, const struct shape *s)
{
    mr_unmap_memory(m->bucket, transact_map_part(s));
    stamps_destroy(&m->stamps);
    pools_destroy(&m->pools);
    *m = (struct transact_map){0};
}

MR_INLINE u64 transact_map_token(const struct transact_map *m, const struct shape *s, const u64 *key)
{
    return mr_hash(key, mr_words(s->key_bytes), &m->secret) >> 1;
}

MR_INLINE struct transact_bucket *transact_map_first(const struct transact_map *m, u64 token)
{
    return &m->bucket[(u32)token & m->mask];
}

/* ---- stamps of cores that may be writing theirs ---- */

MR_INLINE u64 transact_stamp_known(const struct transact *t, const struct transact_map *m, const struct shape *s,
                                   u32 index)
{
    u64 mine = __atomic_load_n(stamps_at(&m->stamps, t->core, index), __ATOMIC_RELAXED);
    u64 stamp = __atomic_load_n(transact_map_stamp(m, s, index), __ATOMIC_RELAXED);

    return mine > stamp ? mine : stamp;
}

/* Whether what this core knows keeps an entry alive. Where the entry's own stamp does, the core's is not looked at, which is in another
 * line. */
MR_INLINE int transact_stamp_lives(const struct transact *t, const struct transact_map *m, const struct shape *s,
                                   const u64 *stamp, u32 index, u64 now)
{
    if (mr_likely(!expiry_over(__atomic_load_n(stamp, __ATOMIC_RELAXED), s->expire_after, now)))
        return 1;
    return !expiry_over(__atomic_load_n(stamps_at(&m->stamps, t->core, index), __ATOMIC_RELAXED), s->expire_after, now);
}

MR_INLINE u64 transact_stamp_joined(const struct transact_map *m, const struct shape *s, u32 index)
{
    u64 latest = __atomic_load_n(transact_map_stamp(m, s, index), __ATOMIC_RELAXED);

    for (u32 i = 0; i < m->stamps.cores; i++) {
        u64 stamp;

        MR_POINT();
        stamp = __atomic_load_n(stamps_at(&m->stamps, i, index), __ATOMIC_RELAXED);
        if (stamp > latest)
            latest = stamp;
    }
    return latest;
}

/* Of an entry that is filled anew. Another core's line is written only where it has refreshed the last tenant. */
MR_INLINE void transact_stamp_forget(const struct transact_map *m, u32 index)
{
    for (u32 i = 0; i < m->stamps.cores; i++)
        if (__atomic_load_n(stamps_at(&m->stamps, i, index), __ATOMIC_RELAXED))
            __atomic_store_n(stamps_at(&m->stamps, i, index), 0, __ATOMIC_RELAXED);
}

/* ---- looking for a key ---- */

enum transact_sought {
    TRANSACT_ABSENT,
    TRANSACT_THERE,
    TRANSACT_OWN,   /* this packet inserted it: `own` */
    TRANSACT_MET, /* another core is at work on it */
};

struct transact_find {
    /* of a token that names an entry, which is there, nothing but `index` and `seen` is set */
    struct transact_bucket *first;
    u64 first_seen;
    int first_free;  /* no other core has taken the bucket's word */
    u32 index;       /* of the entry that is there */
    u64 seen;        /* its word */
    u32 *way;        /* that leads to it */
    u32 *room;       /* a vacant way, or NULL */
    struct transact_pending *own;
};

MR_INLINE int transact_key_equal(const u64 *shared, const u64 *key, u32 words)
{
    u64 difference = 0;

    for (u32 i = 0; i < words; i++)
        difference |= __atomic_load_n(&shared[i], __ATOMIC_RELAXED) ^ key[i];
    return difference == 0;
}

/* The ways of a bucket with this signature: bit i for way i. */
MR_INLINE u32 transact_match(const struct transact_bucket *b, const struct shape *s, u32 signature)
{
#if defined(__clang__) && __clang_major__ >= 15 && !__has_feature(thread_sanitizer) && !defined(TRANSACT_EXACT)
    /* As wide loads are of what is stored by 32 bits: each way is old or new. */
    typedef u32 line __attribute__((ext_vector_type(16), may_alias));
    typedef _Bool bits __attribute__((ext_vector_type(16)));
    const line all = *(const volatile line *)b;
    bits equal = __builtin_convertvector((all & ~table_indices(s)) == signature, bits);
    u16 match;

    _Static_assert(sizeof(struct transact_bucket) == 64 && TRANSACT_WAYS == 13, "ways are lanes 3 to 15");
    memcpy(&match, &equal, sizeof match);
    return match >> 3;
#else
    u32 match = 0;

    for (u32 i = 0; i < TRANSACT_WAYS; i++)
        match |= (u32)((transact_load32(&b->way[i]) & ~table_indices(s)) == signature) << i;
    return match;
#endif
}

/* What earlier operations of this packet did to the key, the entry or the way; NULL: nothing. */
MR_INLINE struct transact_pending *transact_map_pending(struct transact *t, const struct transact_map *m,
                                                        enum transact_change change, u32 index, const u32 *way)
{
    for (u32 i = 0; i < t->pendings; i++) {
        struct transact_pending *p = &t->pending[i];

        if (p->object == m && p->change == change && (way ? p->way == way : p->index == index))
            return p;
    }
    return NULL;
}

/* The first vacant way of a bucket into which this packet has not put anything, or NULL. */
MR_OUTLINE u32 *transact_vacant(struct transact *t, const struct transact_map *m, struct transact_bucket *b)
{
    for (u32 i = 0; i < TRANSACT_WAYS; i++)
        if (transact_load32(&b->way[i]) == 0 && !transact_map_pending(t, m, TRANSACT_INSERTED, 0, &b->way[i]))
            return &b->way[i];
    return NULL;
}

/* A token that names the entry which a bucket shows for it now: who comes to the operation looks at that entry, and not at the bucket.
 * An entry whose word says that it lives, with the key that is sought, is that key's, however long ago it was named. */
#define TRANSACT_NAMED (1ull << 63)

MR_INLINE u64 transact_map_named(const struct transact_map *m, const struct shape *s, u64 token)
{
    const struct transact_bucket *b = transact_map_first(m, token);
    u32 match = transact_match(b, s, table_signature(s, token));
    /* Whatever it shows: the entry says whether it is the key's. */
    u32 way = __atomic_load_n(&b->way[__builtin_ctz(match | 1u << (TRANSACT_WAYS - 1))], __ATOMIC_RELAXED);
    u32 index = way & table_indices(s);

    return match && index < s->capacity ? TRANSACT_NAMED | index : token;
}

/* The token of the key itself. */
MR_INLINE u64 transact_map_unnamed(const struct transact_map *m, const struct shape *s, const u64 *key, u64 token)
{
    return mr_likely(!(token & TRANSACT_NAMED)) ? token : transact_map_token(m, s, key);
}

MR_INLINE enum transact_sought transact_map_seek(struct transact *t, struct transact_map *m, const struct shape *s,
                                                 const u64 *key, u64 token, struct transact_find *f)
{
    u32 signature, words = mr_words(s->key_bytes);
    struct transact_bucket *b;

    /* What the packet itself has done to keys its list says. */
    if (token & TRANSACT_NAMED && mr_likely(!t->pendings && !t->alone)) {
        u32 index = (u32)token;
        int still = transact_look(t, transact_map_word(m, s, index), &f->seen);

        MR_POINT();
        if (mr_likely(still && !(f->seen & TRANSACT_GONE) &&
                      transact_key_equal(transact_map_key(m, s, index), key, words))) {
            f->index = index;
            return TRANSACT_THERE;
        }
    }
    token = transact_map_unnamed(m, s, key, token);
    signature = table_signature(s, token);
    b = transact_map_first(m, token);
    for (u32 i = 0; mr_unlikely(i < t->pendings); i++) {
        struct transact_pending *p = &t->pending[i];

        if (p->object == m && p->change == TRANSACT_INSERTED &&
            transact_key_equal(transact_map_key(m, s, p->index), key, words)) {
            f->own = p;
            return TRANSACT_OWN;
        }
    }
    f->first = b;
    f->room = NULL;
    f->first_free = transact_look(t, &b->word, &f->first_seen);
    for (;;) {
        u32 match = transact_match(b, s, signature);

        for (; match; match &= match - 1) {
            u32 *way = &b->way[__builtin_ctz(match)];
            u32 index = transact_load32(way) & table_indices(s);
            int still;

            if (index >= s->capacity)
                continue;
            still = transact_look(t, transact_map_word(m, s, index), &f->seen);
            MR_POINT();
            if (!transact_key_equal(transact_map_key(m, s, index), key, words))
                continue;
            if (mr_unlikely(t->pendings) && transact_map_pending(t, m, TRANSACT_REMOVED, index, NULL))
                continue;
            if (!t->alone && (!still || f->seen & TRANSACT_GONE)) {
                TRANSACT_PROFILED(t->met = transact_map_word(m, s, index);)
                return TRANSACT_MET;
            }
            f->index = index;
            f->way = way;
            return TRANSACT_THERE;
        }
        if (!f->room)
            f->room = transact_vacant(t, m, b);
        if (mr_likely(b->next == 0)) {
            TRANSACT_PROFILED(if (!t->alone && !f->first_free) t->met = &f->first->word;)
            return t->alone || f->first_free ? TRANSACT_ABSENT : TRANSACT_MET;
        }
        b = &m->bucket[b->next];
    }
}

/* For tests: an entry is removed because it has expired. */
MR_INLINE void transact_map_expired(struct transact *t, const struct transact_map *m, const struct shape *s, u32 index)
{
    (void)t, (void)m, (void)s, (void)index;
    TRANSACT_LOGGED(accesses_removed(t->log, m, t->time, (const u8 *)transact_map_key(m, s, index), s->key_bytes);)
}

/* ---- removal at once: alone, or with the words of entry and bucket taken; numbered ones have neither bucket nor way ---- */

MR_INLINE void transact_map_remove(struct transact *t, struct transact_map *m, const struct shape *s,
                                   struct transact_bucket *first, u32 *way, u32 index)
{
    if (__atomic_load_n(&m->word, __ATOMIC_RELAXED) & TRANSACT_FULL)
        transact_move_on(t, &m->word, 0);
    MR_POINT();
    if (!s->numbered)
        __atomic_store_n(way, 0, __ATOMIC_RELEASE);
    transact_move_on(t, transact_map_word(m, s, index), TRANSACT_DEAD);
    if (!s->numbered)
        transact_move_on(t, &first->word, 0);
    pools_free(&m->pools, t->core, index);
}

/* The way that leads to an entry, which is filed. */
MR_INLINE u32 *transact_map_way(const struct transact_map *m, const struct shape *s, struct transact_bucket *b,
                                u64 token, u32 index)
{
    u32 wanted = table_signature(s, token) | index;

    for (;; b = &m->bucket[b->next]) {
        for (u32 i = 0; i < TRANSACT_WAYS; i++)
            if (__atomic_load_n(&b->way[i], __ATOMIC_RELAXED) == wanted)
                return &b->way[i];
        if (b->next == 0)
            return NULL;
    }
}

/* ---- expiry ---- */

/* Marks an entry as dying; 0: its word is no longer what was seen. */
MR_INLINE int transact_map_mark(struct transact_map *m, const struct shape *s, u32 index, u64 seen)
{
    return !(seen & TRANSACT_FLAGS) && transact_cas(transact_map_word(m, s, index), seen, seen | TRANSACT_DYING);
}

/* Decides about an entry that this core marked, after the grace. */
MR_OUTLINE void transact_map_resolve(struct transact *t, struct transact_map *m, const struct shape *s, u32 index,
                                     u64 marked)
{
    u64 *word = transact_map_word(m, s, index), key[MR_KEY_WORDS_MAX], token, latest;
    struct transact_bucket *first;
    u32 spins = 0;

    /* Who was alone since has removed it, or written it. */
    if (transact_load(word) != marked)
        return;
    latest = transact_stamp_joined(m, s, index);
    if (!expiry_over(latest, s->expire_after, t->time)) {
        __atomic_store_n(transact_map_stamp(m, s, index), latest, __ATOMIC_RELAXED);
        TRANSACT_LOGGED(accesses_note(t->log, MR_ACCESS_WRITE, word, transact_next(t, marked, 0) >> 25, 0);)
        transact_store(word, transact_next(t, marked, 0));
        return;
    }
    if (s->numbered) {
        /* The one word beside the entry's is the object's. */
        for (u64 full; (full = transact_load(&m->word)) & TRANSACT_FULL; transact_relax(&spins))
            if (!(full & TRANSACT_TAKEN) && transact_cas(&m->word, full, full | TRANSACT_TAKEN))
                break;
        transact_map_expired(t, m, s, index);
        transact_map_remove(t, m, s, NULL, NULL, index);
        return;
    }
    for (u32 i = 0; i < mr_words(s->key_bytes); i++)
        key[i] = __atomic_load_n(&transact_map_key(m, s, index)[i], __ATOMIC_RELAXED);
    token = transact_map_token(m, s, key);
    first = transact_map_first(m, token);
    /* Whoever has the bucket's word does not wait for this entry: a mark makes them give way. Nor does this core wait for
     * the map's word while it has the bucket's. */
    for (;;) {
        u64 seen = transact_load(&first->word), full;

        if (!(seen & TRANSACT_TAKEN) && transact_cas(&first->word, seen, seen | TRANSACT_TAKEN)) {
            full = transact_load(&m->word);
            if (!(full & TRANSACT_FULL) ||
                (!(full & TRANSACT_TAKEN) && transact_cas(&m->word, full, full | TRANSACT_TAKEN)))
                break;
            transact_store(&first->word, seen);
        }
        transact_relax(&spins);
    }
    transact_map_expired(t, m, s, index);
    transact_map_remove(t, m, s, first, transact_map_way(m, s, first, token, index), index);
}

/* Between two attempts: whether an entry has expired that this core alone cannot tell. */
MR_OUTLINE void transact_map_decide(struct transact *t, void *object, const struct shape *s, u32 index)
{
    struct transact_map *m = (struct transact_map *)object;
    u64 seen = transact_load(transact_map_word(m, s, index));

    if (!transact_map_mark(m, s, index, seen))
        return;
    if (!TRANSACT_FAULT(TRANSACT_FAULT_GRACE))
        transact_grace(t);
    transact_map_resolve(t, m, s, index, seen | TRANSACT_DYING);
    TRANSACT_LOGGED(accesses_end(t->log, MR_ACCESS_EVENT, 0, t->lock->commits, t->time);)
}

/* Once a burst, by who has its line, between packets: free entries that have rested are made ready, and of the core's
 * entries that may have expired some are looked at. `now`: ns. */
MR_OUTLINE void transact_map_age(struct transact *t, struct transact_map *m, const struct shape *s, u64 now)
{
    struct pool *own = &m->pools.pool[t->core];
    struct expiry *e = &own->expiry;
    u32 index[TRANSACT_BATCH], count = 0;
    u64 marked[TRANSACT_BATCH], late = expiry_late(s->expire_after, now);

    pools_settle(&m->pools, t->lock, t->core);
    if (!s->expire_after)
        return;
    t->time = late;
    /* What this core knows to be alive needs nobody else. */
    for (u32 budget = EXPIRY_BUDGET; budget > 0 && expiry_any(e, late); budget--) {
        u64 known = transact_stamp_known(t, m, s, e->item[0].index);

        if (expiry_over(known, s->expire_after, late))
            break;
        expiry_mend(e, expiry_due(known, s->expire_after));
    }
    /* The root and what is next to it in the heap. */
    for (u32 i = 0; i < e->count && i < 21 && count < TRANSACT_BATCH; i++) {
        u32 at = e->item[i].index;
        u64 seen;

        if (e->item[i].due > late || e->item[i].due == UINT64_MAX ||
            !expiry_over(transact_stamp_known(t, m, s, at), s->expire_after, late))
            continue;
        seen = transact_load(transact_map_word(m, s, at));
        if (!transact_map_mark(m, s, at, seen))
            continue;
        index[count] = at;
        marked[count++] = seen | TRANSACT_DYING;
    }
    if (count == 0)
        return;
    if (!TRANSACT_FAULT(TRANSACT_FAULT_GRACE))
        transact_grace(t);
    for (u32 i = 0; i < count; i++) {
        if (transact_load(transact_map_word(m, s, index[i])) != marked[i])
            continue;
        transact_map_resolve(t, m, s, index[i], marked[i]);
        TRANSACT_LOGGED(accesses_end(t->log, MR_ACCESS_EVENT, 0, t->lock->commits, t->time);)
        if (transact_load(transact_map_word(m, s, index[i])) & TRANSACT_DEAD)
            continue;
        /* It lives: its bound is mended. Nobody but this core files its entries or takes them out of the heap. */
        expiry_remove(e, index[i]);
        expiry_push(e, index[i], expiry_due(*transact_map_stamp(m, s, index[i]), s->expire_after));
    }
}

/* Whether the entry that was found is alive; 0: not, or another attempt has to tell (`decide` is set then). */
MR_INLINE int transact_map_alive(struct transact *t, struct transact_map *m, const struct shape *s,
                                 struct transact_find *f)
{
    if (!s->expire_after)
        return 1;
    MR_POINT();
    if (mr_likely(transact_stamp_lives(t, m, s, transact_map_stamp(m, s, f->index), f->index, t->time)))
        return 1;
    t->decide = transact_map_decide;
    t->decide_object = m;
    t->decide_shape = s;
    t->decide_index = f->index;
    return 0;
}

#ifdef MR_PROFILE
/* What a word of the map is (enum mr_conflict_what); MR_CONFLICT_OTHER: it is none of its words. */
MR_INLINE u32 transact_map_what(const struct transact_map *m, const struct shape *s, const void *word)
{
    const u8 *at = (const u8 *)word, *buckets = (const u8 *)m->bucket;

    if (word == &m->word)
        return MR_CONFLICT_FULL;
    if (at >= m->slab && at < m->slab + table_stride(s, transact_map_head(s)) * s->capacity)
        return MR_CONFLICT_ENTRY;
    if (at >= buckets && at < buckets + transact_map_buckets(s))
        return MR_CONFLICT_BUCKET;
    return MR_CONFLICT_OTHER;
}

/* The key of an entry's word. */
MR_INLINE const u8 *transact_map_key_at(const struct transact_map *m, const struct shape *s, const void *word)
{
    u64 offset = (u64)((const u8 *)word - m->slab);

    return (const u8 *)transact_map_key(m, s, (u32)(offset / table_stride(s, transact_map_head(s))));
}
#endif

#include "transact_map_alone.h"
#include "transact_map_packet.h"

#endif
