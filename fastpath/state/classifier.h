/* classifier: the class of a key under rules (crates/classify).
 *
 * The host makes a table of the rules and attaches it; one table serves all workers, and a new one takes its place between
 * two bursts of each worker. Without a table every key has class 0. A table is a diagram or trees; its layout is that of
 * crates/classify/src/table.rs, which has the other side and is the reference of the walk.
 *
 * Diagram. A level tests one word of the key. A node is a B-tree of blocks of one cache line: fifteen numbers, and in the
 * last place where the blocks below begin, marked CLASSIFIER_INNER, or in the lowest blocks where the node's children
 * begin. All numbers of a block are compared at once; how many are less than the word is the way. A level takes the same
 * number of steps from all its nodes, so that a burst goes step by step, with no branch that depends on a packet, and
 * the cache misses of its packets overlap (DBMS research calls it group prefetching: Chen et al., ICDE 2004).
 *
 * Trees. A packet goes down each, and takes the earliest rule of those that contain it.
 *
 * Contract. A read-only object: nothing that a program does changes it. The token of a key is its class.
 *
 * Cost: a diagram takes as many cache lines as blocks and children on the way, at most 2 a step. Memory: none of the
 * instance's; bytes = 0. The table is bounded by the host's budget.
 */
#ifndef MR_CLASSIFIER_H
#define MR_CLASSIFIER_H

#include "../base.h"

#if defined(__AVX512F__) || defined(__AVX2__)
#include <immintrin.h>
#endif

#define CLASSIFIER_INNER 0x80000000u
#define CLASSIFIER_LEAF 0x80000000u
#define CLASSIFIER_FIRST 7u /* the first block behind head, words, levels and roots */
#define CLASSIFIER_BURST 32u

enum { CLASSIFIER_DIAGRAM = 1, CLASSIFIER_TREES = 2 };

/* The head, the first block. Places are counted in numbers of 32 bits from the beginning. */
struct classifier_head {
    u32 form;
    u32 words;
    u32 classes;
    u32 levels;
    u32 root;
    u32 children;
    u32 roots;
    u32 nodes;
    u32 list;
    u32 boxes;
    u32 class;
    u32 blocks;
    u32 key_bytes;
    u32 unused[3];
};

/* A word of the key: 4 bytes from `from` on, in network order if `swap`, then shifted and masked. */
struct classifier_word {
    u32 from;
    u32 swap;
    u32 shift;
    u32 mask;
};

struct classifier_table {
    struct classifier_head head;
    struct classifier_word word[16];
    u32 level[16]; /* word | steps << 8 */
    u32 root[16];
};

_Static_assert(sizeof(struct classifier_table) == 64 * CLASSIFIER_FIRST, "as the host lays it out");

struct classifier {
    const struct classifier_table *table;
};

MR_INLINE u64 classifier_bytes(const struct shape *s)
{
    (void)s;
    return 0;
}

static inline int classifier_create(struct classifier *c, const struct shape *s, const struct mr_config *config,
                                    const u8 *initial)
{
    (void)s;
    (void)config;
    (void)initial;
    *c = (struct classifier){0};
    return 0;
}

static inline void classifier_destroy(struct classifier *c, const struct shape *s)
{
    (void)s;
    *c = (struct classifier){0};
}

/* `.classes` of the declaration, 2 unless set. */
MR_INLINE u32 classifier_classes(const struct shape *s) { return s->rows ? s->rows : 2; }

static inline int classifier_attach(struct classifier *c, const struct shape *s, const void *table)
{
    const struct classifier_table *t = table;

    if (t && (t->head.key_bytes != s->key_bytes || t->head.classes > classifier_classes(s)))
        return -EINVAL;
    c->table = t;
    return 0;
}

/* ---- the walk ---- */

MR_INLINE const u32 *classifier_at(const struct classifier_table *t, u32 place) { return (const u32 *)t + place; }

MR_INLINE const u32 *classifier_block(const struct classifier_table *t, u32 block)
{
    return (const u32 *)t + 16 * (size_t)(CLASSIFIER_FIRST + block);
}

MR_INLINE u32 classifier_word_of(struct classifier_word w, const u64 *key)
{
    u32 x;

    memcpy(&x, (const u8 *)key + w.from, 4);
    x = w.swap ? __builtin_bswap32(x) : x;
    return (x >> w.shift) & w.mask;
}

/* How many of the fifteen numbers of a block are less than x. */
MR_INLINE u32 classifier_way(const u32 *block, u32 x)
{
#if defined(__AVX512F__)
    __m512i numbers = _mm512_load_si512((const void *)block);

    return (u32)__builtin_popcount(_mm512_cmplt_epu32_mask(numbers, _mm512_set1_epi32((int)x)) & 0x7fffu);
#elif defined(__AVX2__)
    __m256i low = _mm256_load_si256((const __m256i *)block), high = _mm256_load_si256((const __m256i *)block + 1);
    __m256i all = _mm256_set1_epi32((int)x);
    /* max(number, x) is the number where that is not less. */
    __m256i first = _mm256_cmpeq_epi32(_mm256_max_epu32(low, all), low);
    __m256i second = _mm256_cmpeq_epi32(_mm256_max_epu32(high, all), high);
    u32 not_less = (u32)_mm256_movemask_ps(_mm256_castsi256_ps(first)) |
                   (u32)_mm256_movemask_ps(_mm256_castsi256_ps(second)) << 8;

    return (u32)__builtin_popcount(~not_less & 0x7fffu);
#else
    u32 way = 0;

    for (u32 i = 0; i < 15; i++)
        way += block[i] < x;
    return way;
#endif
}

/* The classes of n keys, at most CLASSIFIER_BURST, by a diagram. */
MR_INLINE void classifier_walk(const struct classifier_table *t, const u64 *const *keys, u64 *classes, u32 n)
{
    const u32 *children = classifier_at(t, t->head.children);
    u32 at[CLASSIFIER_BURST], x[CLASSIFIER_BURST];

    for (u32 i = 0; i < n; i++)
        at[i] = t->head.root;
    for (u32 level = 0; level < t->head.levels; level++) {
        const struct classifier_word w = t->word[t->level[level] & 0xff];

        for (u32 i = 0; i < n; i++)
            x[i] = classifier_word_of(w, keys[i]);
        for (u32 step = t->level[level] >> 8; step > 1; step--) {
            for (u32 i = 0; i < n; i++) {
                const u32 *block = classifier_block(t, at[i]);
                u32 below = block[15], next = (below & ~CLASSIFIER_INNER) + classifier_way(block, x[i]);

                at[i] = below & CLASSIFIER_INNER ? next : at[i];
            }
        }
        for (u32 i = 0; i < n; i++) {
            const u32 *block = classifier_block(t, at[i]);

            at[i] = children[block[15] + classifier_way(block, x[i])];
        }
    }
    for (u32 i = 0; i < n; i++)
        classes[i] = at[i];
}

/* Whether a box contains a key of these words; `twice` has each word twice, as a box has two numbers a word. */
MR_INLINE u32 classifier_inside(const u32 *box, const u32 *twice, u32 words)
{
    u32 out = 0;

#if defined(__AVX512F__)
    if (words <= 8) {
        /* 64 bytes from the beginning of any box are there: the classes of rules are behind the boxes. */
        __m512i numbers = _mm512_loadu_si512((const void *)box), x = _mm512_load_si512((const void *)twice);
        u32 below = _mm512_cmplt_epu32_mask(x, numbers), above = _mm512_cmpgt_epu32_mask(x, numbers);

        return (((below & 0x5555u) | (above & 0xaaaau)) & ((1u << 2 * words) - 1)) == 0;
    }
#endif
    for (u32 w = 0; w < words; w++)
        out |= (twice[2 * w] < box[2 * w]) | (twice[2 * w] > box[2 * w + 1]);
    return !out;
}

/* The first rule of a leaf that contains a key, or UINT32_MAX. Eight rules at a time, without a branch on whether one does. */
MR_INLINE u32 classifier_leaf(const u32 *list, u32 n, const u32 *boxes, const u32 *twice, u32 words)
{
    for (u32 i = 0; i < n; i += 8) {
        u32 some = n - i < 8 ? n - i : 8, found = 0;

        for (u32 j = 0; j < some; j++)
            found |= classifier_inside(boxes + 2 * (size_t)words * list[i + j], twice, words) << j;
        if (found)
            return list[i + (u32)__builtin_ctz(found)];
    }
    return UINT32_MAX;
}

/* The classes of n keys, at most CLASSIFIER_BURST, by trees: down each tree with all keys step by step, then their leaves. */
MR_INLINE void classifier_search(const struct classifier_table *t, const u64 *const *keys, u64 *classes, u32 n)
{
    const u32 *nodes = classifier_at(t, t->head.nodes), *list = classifier_at(t, t->head.list);
    const u32 *boxes = classifier_at(t, t->head.boxes), *class = classifier_at(t, t->head.class);
    _Alignas(64) u32 x[CLASSIFIER_BURST][32];
    u32 words = t->head.words, first[CLASSIFIER_BURST], at[CLASSIFIER_BURST];

    for (u32 i = 0; i < n; i++) {
        for (u32 w = 0; w < words; w++)
            x[i][2 * w] = x[i][2 * w + 1] = classifier_word_of(t->word[w], keys[i]);
        /* Lanes of no word are compared and left out. */
        for (u32 w = words; w < 8; w++)
            x[i][2 * w] = x[i][2 * w + 1] = 0;
        first[i] = UINT32_MAX;
    }
    for (u32 tree = 0; tree < t->head.roots; tree++) {
        u32 moving;

        for (u32 i = 0; i < n; i++)
            at[i] = t->root[tree];
        do {
            moving = 0;
            for (u32 i = 0; i < n; i++) {
                const u32 *node = nodes + 2 * (size_t)at[i];
                u32 leaf = node[0] & CLASSIFIER_LEAF, bits = node[0] >> 16 & 31;
                u32 part = x[i][2 * (node[0] & 15)] >> (node[0] >> 8 & 31) & ((1u << bits) - 1);

                at[i] = leaf ? at[i] : node[1] + part;
                moving |= !leaf;
            }
        } while (moving);
        for (u32 i = 0; i < n; i++) {
            const u32 *node = nodes + 2 * (size_t)at[i];
            u32 rule = classifier_leaf(list + node[1], node[0] & ~CLASSIFIER_LEAF, boxes, x[i], words);

            first[i] = rule < first[i] ? rule : first[i];
        }
    }
    for (u32 i = 0; i < n; i++)
        classes[i] = first[i] == UINT32_MAX ? 0 : class[first[i]];
}

/* The classes of n keys, at most CLASSIFIER_BURST. */
MR_OUTLINE void classifier_classes_of(const struct classifier_table *t, const u64 *const *keys, u64 *classes, u32 n)
{
    if (t->head.form == CLASSIFIER_DIAGRAM)
        classifier_walk(t, keys, classes, n);
    else
        classifier_search(t, keys, classes, n);
}

/* ---- for the prefetching passes: the token is the class ---- */

MR_INLINE u64 classifier_token(const struct classifier *c, const struct shape *s, const u64 *key)
{
    u64 class = 0;

    (void)s;
    if (c->table)
        classifier_classes_of(c->table, &key, &class, 1);
    return class;
}

/* Those of a batch at once. */
MR_INLINE void classifier_tokens(const struct classifier *c, const struct shape *s, const u64 *const *keys,
                                 u64 *tokens, u32 n)
{
    (void)s;
    for (u32 i = 0; i < n; i += CLASSIFIER_BURST) {
        u32 some = n - i < CLASSIFIER_BURST ? n - i : CLASSIFIER_BURST;

        if (c->table)
            classifier_classes_of(c->table, keys + i, tokens + i, some);
        else
            memset(tokens + i, 0, some * sizeof(*tokens));
    }
}

MR_INLINE void classifier_prefetch(const struct classifier *c, const struct shape *s, u64 token)
{
    (void)c;
    (void)s;
    (void)token;
}

MR_INLINE u64 classifier_prefetch_entry(const struct classifier *c, const struct shape *s, u64 token)
{
    (void)c;
    (void)s;
    return token;
}

/* A burst is walked three times as fast as its packets one by one, cached or not. */
MR_INLINE int classifier_cold(const struct classifier *c, const struct shape *s)
{
    (void)s;
    return c->table != NULL;
}

/* ---- handlers ---- */

MR_INLINE u64 classifier_classify(struct classifier *c, const struct shape *s, const u64 *key, u64 token,
                                  struct mr_packet *pkt)
{
    (void)c;
    (void)s;
    (void)key;
    (void)pkt;
    return token;
}

#endif
