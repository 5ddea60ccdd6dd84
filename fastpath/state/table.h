/* The keyed table under `hash` and `lru_hash`: buckets of short signatures over a slab of entries.
 *
 * A bucket is one cache line: fifteen ways of 32 bits, compared at once, and the next bucket of its
 * chain. A way holds a slab index, of as few bits as the capacity needs, and above it a signature. A
 * lookup touches one bucket and, but for a false match, the one entry that has the key. There are 4
 * to 8 entries a bucket at capacity: one bucket in a hundred has an overflow bucket, and false
 * matches are 8 in 2^(31 - index bits): 1 in 4096 at 64K entries, 1 in 256 at 1M, 1 in 16 at 16M.
 * Dense buckets are what lets the hot ones stay in the cache.
 *
 * Exactly `capacity` entries fit, whatever their keys. Every bucket of a chain but the last is full:
 * a removal moves the chain's last entry into the hole. A chain of n > 0 entries thus has at most
 * (n - 1) / 15 overflow buckets, and all chains together at most capacity / 15.
 *
 * Entries lie in the order they were taken from the free list, which depends on the operations
 * only: nothing that can be seen from outside depends on the secret.
 *
 * Memory, each part rounded up to 64 bytes:
 *     buckets   64 * (power_of_two(max(1, ceil(capacity / 8))) + capacity / 15 + 1)
 *     slab      stride * capacity
 *     links     4 * capacity
 * stride: s = head + round_up(key_bytes, 8) + round_up(value_bytes, 8); up to 64 the next power of
 * two, so that no entry straddles a cache line, above it the next multiple of 64. head is 8 for
 * tables that expire (the stamp), else 0.
 */
#ifndef MR_TABLE_H
#define MR_TABLE_H

#include "../base.h"

#define TABLE_WAYS 15
#define TABLE_FREE 0x80000000u /* of a link: the entry is free; the rest names the next free one */
#define TABLE_NEWS 256 /* places that are remembered as taken since somebody asked */
#define TABLE_FOUND 0x80000000u /* of a token's upper half: it tells the entry, see below */

struct table_bucket {
    u32 way[TABLE_WAYS]; /* signature | index; 0: this way and all after it are vacant */
    u32 next;            /* of the chain, or of the list of spare buckets; 0: the last */
} __attribute__((aligned(64)));

struct table {
    struct mr_secret secret;
    struct table_bucket *bucket;
    u8 *slab;
    u32 mask;  /* of the primary buckets */
    u32 used;  /* entries taken */
    u32 *link; /* an entry: TABLE_FREE | next free one, or what its owner keeps there, < 2^31 */
    u32 free;  /* first free entry; TABLE_NIL: none */
    u32 spare; /* first spare bucket; never runs dry, see above */
    u32 changes; /* how often an entry was taken or given back, TABLE_FOUND set */
    u64 full;    /* how often an entry was wanted and none was free */
    u32 news;    /* places taken since table_news was called, one more than fit for all that did not */
    u32 new[TABLE_NEWS];
};

/* Ends the list of free entries. */
#define TABLE_NIL 0x7fffffffu

MR_INLINE u64 table_stride(const struct shape *s, u32 head)
{
    u64 raw = head + mr_round_up(s->key_bytes, 8) + mr_round_up(s->value_bytes, 8) + 2 * MR_GAP;

    return raw <= 64 ? mr_power_of_two(raw) : mr_round_up(raw, 64);
}

MR_INLINE u64 table_primaries(const struct shape *s)
{
    return mr_power_of_two(s->capacity / 8 + (s->capacity % 8 != 0));
}

MR_INLINE u64 table_buckets_bytes(const struct shape *s)
{
    return sizeof(struct table_bucket) * (table_primaries(s) + s->capacity / TABLE_WAYS + 1);
}

/* What table_create takes of a mapping. */
MR_INLINE u64 table_part(const struct shape *s, u32 head)
{
    return mr_part(table_buckets_bytes(s)) + mr_part(table_stride(s, head) * s->capacity) +
           mr_part(4 * s->capacity);
}

/* Whether a declaration can be a table at all; `create` answers with this. */
MR_INLINE int table_valid(const struct shape *s)
{
    if (s->key_bytes == 0 || s->key_bytes > MR_KEY_BYTES_MAX || s->capacity == 0)
        return -EINVAL;
    return s->capacity > MR_CAPACITY_MAX ? -E2BIG : 0;
}

/* All buckets behind the primary ones are spare. */
MR_INLINE void table_spares(struct table *t, const struct shape *s)
{
    u32 primaries = (u32)table_primaries(s);
    u32 spares = (u32)(s->capacity / TABLE_WAYS) + 1;

    t->spare = primaries;
    for (u32 i = 0; i < spares; i++)
        t->bucket[primaries + i].next = i + 1 < spares ? primaries + i + 1 : 0;
}

MR_INLINE void table_create(struct table *t, const struct shape *s, u32 head, u64 seed, u8 **memory)
{
    u32 n = (u32)s->capacity;

    t->secret = mr_secret(seed);
    t->mask = (u32)table_primaries(s) - 1;
    t->used = 0;
    t->changes = TABLE_FOUND;
    t->bucket = (struct table_bucket *)mr_take(memory, table_buckets_bytes(s));
    t->slab = mr_take(memory, table_stride(s, head) * s->capacity);
    t->link = (u32 *)mr_take(memory, 4 * s->capacity);
    t->free = 0;
    for (u32 i = 0; i < n; i++)
        t->link[i] = TABLE_FREE | (i + 1 < n ? i + 1 : TABLE_NIL);
    for (u32 i = 0; MR_GAP && i < n; i++) {
        u64 front = head + mr_round_up(s->key_bytes, 8);

        mr_forbid(t->slab + i * table_stride(s, head) + front, table_stride(s, head) - front);
    }
    table_spares(t, s);
}

MR_INLINE u8 *table_entry(const struct table *t, const struct shape *s, u32 head, u32 index)
{
    return t->slab + (u64)index * table_stride(s, head);
}

/* Which entry an address lies in. */
MR_INLINE u32 table_place(const struct table *t, const struct shape *s, u32 head, const u8 *inside)
{
    return (u32)((u64)(inside - t->slab) / table_stride(s, head));
}

MR_INLINE u64 *table_key(u8 *entry, u32 head) { return (u64 *)(entry + head); }

MR_INLINE u8 *table_value(const struct shape *s, u8 *entry, u32 head)
{
    return entry + head + mr_round_up(s->key_bytes, 8) + MR_GAP;
}

/* As elements_behind, of a value. */
MR_INLINE u64 table_behind(const struct table *t, const struct shape *s, u32 head, const u8 *p, s64 least)
{
    u64 at = (u64)p - (u64)table_value(s, t->slab, head) - (u64)least;

    return at < table_stride(s, head) * s->capacity ? at % table_stride(s, head) : ~0ull;
}

MR_INLINE int table_is_free(const struct table *t, u32 index) { return t->link[index] >> 31; }

MR_INLINE u64 table_token(const struct table *t, const struct shape *s, const u64 *key)
{
    return mr_hash(key, mr_words(s->key_bytes), &t->secret) >> 1;
}

/* A token is the key's hash, of 63 bits. What the second prefetch found goes into it: the index of the
 * entry that probably has the key, and how often the table had changed by then. Such a token serves
 * until the table changes, and as long as the key is that entry's; then it has to be made anew. */
MR_INLINE int table_is_found(u64 token) { return (s64)token < 0; }

MR_INLINE u64 table_found(const struct table *t, u32 index) { return (u64)t->changes << 32 | index; }

MR_INLINE u64 table_hash(const struct table *t, const struct shape *s, const u64 *key, u64 token)
{
    return mr_unlikely(table_is_found(token)) ? table_token(t, s, key) : token;
}

/* The bits of a way that are its index. */
MR_INLINE u32 table_indices(const struct shape *s) { return (u32)mr_power_of_two(s->capacity) - 1; }

/* The bucket comes from the low half of the hash, the signature from the high one. Its lowest bit is
 * set, which tells it from a vacant way. */
MR_INLINE u32 table_signature(const struct shape *s, u64 token)
{
    return ((u32)(token >> 31) | (table_indices(s) + 1)) & ~table_indices(s);
}

/* The ways with this signature, bit i for way i. */
MR_INLINE u32 table_match_portable(const struct table_bucket *b, const struct shape *s, u32 signature)
{
    u32 match = 0;

    for (u32 i = 0; i < TABLE_WAYS; i++)
        match |= (u32)((b->way[i] & ~table_indices(s)) == signature) << i;
    return match;
}

MR_INLINE u32 table_match(const struct table_bucket *b, const struct shape *s, u32 signature)
{
#if defined(__clang__) && __clang_major__ >= 15
    typedef u32 ways __attribute__((ext_vector_type(16), may_alias));
    typedef _Bool bits __attribute__((ext_vector_type(16)));
    bits equal = __builtin_convertvector((*(const ways *)b->way & ~table_indices(s)) == signature, bits);
    u16 match;

    memcpy(&match, &equal, sizeof(match));
    return match & ((1u << TABLE_WAYS) - 1);
#else
    return table_match_portable(b, s, signature);
#endif
}

/* The entry with this key, or NULL. */
MR_INLINE u8 *table_find(const struct table *t, const struct shape *s, u32 head, const u64 *key,
                         u64 token, u32 *index)
{
    const struct table_bucket *b;
    u32 signature;

    if (table_is_found(token)) {
        u8 *entry = table_entry(t, s, head, (u32)token);

        if (mr_likely((u32)(token >> 32) == t->changes &&
                      mr_words_equal(table_key(entry, head), key, mr_words(s->key_bytes)))) {
            *index = (u32)token;
            return entry;
        }
        token = table_token(t, s, key);
    }
    b = &t->bucket[(u32)token & t->mask];
    signature = table_signature(s, token);
    for (;;) {
        for (u32 match = table_match(b, s, signature); match; match &= match - 1) {
            u32 i = b->way[__builtin_ctz(match)] & table_indices(s);
            u8 *entry = table_entry(t, s, head, i);

            if (mr_likely(mr_words_equal(table_key(entry, head), key, mr_words(s->key_bytes)))) {
                *index = i;
                return entry;
            }
        }
        if (mr_likely(b->next == 0))
            return NULL;
        b = &t->bucket[b->next];
    }
}

MR_INLINE void table_prefetch(const struct table *t, u64 token)
{
    mr_prefetch(&t->bucket[(u32)token & t->mask]);
}

/* The entry of the first way that matches; gives the token with which it is found. Without a match some
 * entry is touched in vain, which is cheaper than a branch that cannot be predicted. */
MR_INLINE u64 table_prefetch_entry(const struct table *t, const struct shape *s, u32 head, u64 token)
{
    const struct table_bucket *b = &t->bucket[(u32)token & t->mask];
    u32 match = table_match(b, s, table_signature(s, token));
    u64 touched = head + mr_round_up(s->key_bytes, 8) + mr_round_up(s->value_bytes, 8);
    u32 way = b->way[__builtin_ctz(match | 1u << (TABLE_WAYS - 1))];
    u8 *entry = table_entry(t, s, head, way & table_indices(s));

    mr_prefetch_range(entry, touched <= 256 ? touched : 256);
    return match ? table_found(t, way & table_indices(s)) : token;
}

/* Whether what lookups touch outgrows the cache: the entries there are, not those there could be, so
 * that few flows in a large table stay cheap. Lookups of keys that are not there touch buckets all over
 * a nearly empty table; these are not counted, and not prefetched until the table fills. */
MR_INLINE int table_cold(const struct table *t, const struct shape *s, u32 head)
{
    u64 buckets = t->used <= t->mask ? t->used : (u64)t->mask + 1;

    return t->used * table_stride(s, head) + buckets * sizeof(struct table_bucket) > MR_CACHE_BYTES;
}

/* Files an entry that is not in the table under `token`. */
MR_INLINE void table_file(struct table *t, const struct shape *s, u64 token, u32 index)
{
    struct table_bucket *b = &t->bucket[(u32)token & t->mask];
    u32 way;

    t->link[index] = 0;
    t->used++;
    t->changes = (t->changes + 1) | TABLE_FOUND;
    while (b->next)
        b = &t->bucket[b->next];
    for (way = 0; way < TABLE_WAYS && b->way[way]; way++)
        ;
    if (way == TABLE_WAYS) {
        u32 spare = t->spare;

        t->spare = t->bucket[spare].next;
        t->bucket[spare].next = 0;
        b->next = spare;
        b = &t->bucket[spare];
        way = 0;
    }
    b->way[way] = table_signature(s, token) | index;
}

/* Takes a free entry and files it under `token`; the caller writes the key. MR_NONE: none free. */
MR_INLINE u32 table_claim(struct table *t, const struct shape *s, u64 token)
{
    u32 index = t->free;

    if (index == TABLE_NIL) {
        t->full++;
        return MR_NONE;
    }
    t->free = t->link[index] & ~TABLE_FREE;
    table_file(t, s, token, index);
    if (t->news < TABLE_NEWS)
        t->new[t->news] = index;
    t->news += t->news <= TABLE_NEWS;
    return index;
}

/* Gives an entry back. Its bytes stay as they are until it is taken again: a program may still hold
 * a pointer to the value, as in the kernel. */
MR_INLINE void table_release(struct table *t, const struct shape *s, u64 token, u32 index)
{
    struct table_bucket *b = &t->bucket[(u32)token & t->mask];
    struct table_bucket *hole = NULL, *before = NULL;
    u32 wanted = table_signature(s, token) | index;
    u32 way = 0, last;

    for (;;) {
        for (u32 i = 0; !hole && i < TABLE_WAYS; i++)
            if (b->way[i] == wanted) {
                hole = b;
                way = i;
            }
        if (b->next == 0)
            break;
        before = b;
        b = &t->bucket[b->next];
    }
    if (!hole)
        return;
    for (last = TABLE_WAYS - 1; last > 0 && b->way[last] == 0; last--)
        ;
    hole->way[way] = b->way[last];
    b->way[last] = 0;
    if (last == 0 && before) {
        u32 spare = before->next;

        before->next = 0;
        b->next = t->spare;
        t->spare = spare;
    }
    t->link[index] = TABLE_FREE | t->free;
    t->free = index;
    t->used--;
    t->changes = (t->changes + 1) | TABLE_FOUND;
}

/* ---- save and load: entries keep their places, and free ones the order in which they are taken ---- */

/* While a table is loaded, a link of a place of which nothing has been said. */
#define TABLE_UNSAID 0x7ffffffeu

/* Hands out the free places, as runs of successive ones. */
static inline int table_save_free(const struct table *t, mr_saved_fn *fn, void *context)
{
    u32 at = t->free;

    while (at != TABLE_NIL) {
        struct mr_saved piece = { .what = MR_SAVED_FREE, .place = at, .length = 1 };
        int error;

        for (at = t->link[at] & ~TABLE_FREE; at == piece.place + piece.length; at = t->link[at] & ~TABLE_FREE)
            piece.length++;
        error = fn(context, &piece);
        if (error)
            return error;
    }
    return 0;
}

/* Empties the table; nothing is said of its places. */
static inline void table_load_head(struct table *t, const struct shape *s, u32 head, const struct mr_saved *piece)
{
    memset(t->bucket, 0, table_buckets_bytes(s));
    table_spares(t, s);
    for (u32 i = 0; i < s->capacity; i++) {
        t->link[i] = TABLE_FREE | TABLE_UNSAID;
        mr_forbid(table_value(s, table_entry(t, s, head, i), head), s->value_bytes);
    }
    t->free = TABLE_NIL;
    t->used = 0;
    t->changes = TABLE_FOUND;
    t->full = piece->stamp;
}

MR_INLINE int table_unsaid(const struct table *t, const struct shape *s, u64 place)
{
    return place < s->capacity && t->link[place] == (TABLE_FREE | TABLE_UNSAID);
}

/* Puts an entry at its place; the index of it. */
static inline int table_load_entry(struct table *t, const struct shape *s, u32 head, const struct mr_saved *piece)
{
    u64 word[MR_KEY_WORDS_MAX], token, *key;
    u32 index;
    u8 *entry;

    if (piece->place >= s->capacity)
        return -E2BIG;
    mr_pad_key(word, piece->key, s->key_bytes);
    token = table_token(t, s, word);
    if (!table_unsaid(t, s, piece->place) || table_find(t, s, head, word, token, &index))
        return -EEXIST;
    index = (u32)piece->place;
    table_file(t, s, token, index);
    entry = table_entry(t, s, head, index);
    key = table_key(entry, head);
    for (u32 i = 0; i < mr_words(s->key_bytes); i++)
        key[i] = word[i];
    mr_allow(table_value(s, entry, head), s->value_bytes);
    memcpy(table_value(s, entry, head), piece->value, s->value_bytes);
    return 0;
}

/* The list grows at its head, and is turned around at the end. */
static inline int table_load_free(struct table *t, const struct shape *s, const struct mr_saved *piece)
{
    if (piece->place >= s->capacity || piece->length > s->capacity - piece->place)
        return -E2BIG;
    for (u64 i = piece->place; i < piece->place + piece->length; i++) {
        if (!table_unsaid(t, s, i))
            return -EEXIST;
        t->link[i] = TABLE_FREE | t->free;
        t->free = (u32)i;
    }
    return 0;
}

/* Places of which nothing was said, as there are where more entries fit than before, are taken last. */
static inline void table_load_end(struct table *t, const struct shape *s)
{
    u32 at, turned = TABLE_NIL;

    for (u32 i = 0; i < s->capacity; i++)
        if (table_unsaid(t, s, i)) {
            t->link[i] = TABLE_FREE | t->free;
            t->free = i;
        }
    for (at = t->free; at != TABLE_NIL;) {
        u32 next = t->link[at] & ~TABLE_FREE;

        t->link[at] = TABLE_FREE | turned;
        turned = at;
        at = next;
    }
    t->free = turned;
}

#endif
