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
 * Trees. A node is a block of fourteen numbers, the word that they divide, and where its children are. A leaf's rules are in
 * groups of eight that are compared at once. A packet goes down each tree, and takes the earliest rule of those that contain it.
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
    u32 nodes; /* these two counted in blocks */
    u32 groups;
    u32 blocks;
    u32 key_bytes;
    u32 unused[5];
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

/* How many of a block's first `numbers`, at most fifteen, are less than x. */
MR_INLINE u32 classifier_less(const u32 *block, u32 x, u32 numbers)
{
#if defined(__AVX512F__)
    __m512i all = _mm512_load_si512((const void *)block);
    u32 less = _mm512_cmplt_epu32_mask(all, _mm512_set1_epi32((int)x));

    return (u32)__builtin_popcount(less & ((1u << numbers) - 1));
#elif defined(__AVX2__)
    __m256i low = _mm256_load_si256((const __m256i *)block), high = _mm256_load_si256((const __m256i *)block + 1);
    __m256i all = _mm256_set1_epi32((int)x);
    /* max(number, x) is the number where that is not less. */
    __m256i first = _mm256_cmpeq_epi32(_mm256_max_epu32(low, all), low);
    __m256i second = _mm256_cmpeq_epi32(_mm256_max_epu32(high, all), high);
    u32 not_less = (u32)_mm256_movemask_ps(_mm256_castsi256_ps(first)) |
                   (u32)_mm256_movemask_ps(_mm256_castsi256_ps(second)) << 8;

    return (u32)__builtin_popcount(~not_less & ((1u << numbers) - 1));
#else
    u32 way = 0;

    for (u32 i = 0; i < numbers; i++)
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
                u32 below = block[15], next = (below & ~CLASSIFIER_INNER) + classifier_less(block, x[i], 15);

                at[i] = below & CLASSIFIER_INNER ? next : at[i];
            }
        }
        for (u32 i = 0; i < n; i++) {
            const u32 *block = classifier_block(t, at[i]);

            at[i] = children[block[15] + classifier_less(block, x[i], 15)];
        }
    }
    for (u32 i = 0; i < n; i++)
        classes[i] = at[i];
}

/* Which of the eight rules of a group contain a key, a bit each. */
MR_INLINE u32 classifier_inside(const u32 *group, const u32 *x, u32 words)
{
    u32 in = 0xff;

#if defined(__AVX2__)
    __m256i all = _mm256_set1_epi32(-1);

    for (u32 w = 0; w < words; w++, group += 16) {
        __m256i first = _mm256_load_si256((const __m256i *)group), more = _mm256_load_si256((const __m256i *)group + 1);
        __m256i beyond = _mm256_sub_epi32(_mm256_set1_epi32((int)x[w]), first);

        all = _mm256_and_si256(all, _mm256_cmpeq_epi32(_mm256_min_epu32(beyond, more), beyond));
    }
    in = (u32)_mm256_movemask_ps(_mm256_castsi256_ps(all));
#else
    for (u32 w = 0; w < words; w++, group += 16) {
        for (u32 i = 0; i < 8; i++)
            in &= ~((u32)(x[w] - group[i] > group[8 + i]) << i);
    }
#endif
    return in;
}

/* The classes of n keys, at most CLASSIFIER_BURST, by trees: down each tree with all keys step by step, then the groups of their
 * leaves, one after the other of those keys that have not found their rule. */
MR_INLINE void classifier_search(const struct classifier_table *t, const u64 *const *keys, u64 *classes, u32 n)
{
    const u32 *nodes = classifier_at(t, 16 * t->head.nodes), *groups = classifier_at(t, 16 * t->head.groups);
    u32 words = t->head.words, size = 16 * (words + 1), x[CLASSIFIER_BURST][16];
    u32 rule[CLASSIFIER_BURST], class[CLASSIFIER_BURST], at[CLASSIFIER_BURST], left[CLASSIFIER_BURST];
    u8 live[CLASSIFIER_BURST];

    for (u32 i = 0; i < n; i++) {
        for (u32 w = 0; w < words; w++)
            x[i][w] = classifier_word_of(t->word[w], keys[i]);
        rule[i] = UINT32_MAX;
        class[i] = 0;
    }
    for (u32 tree = 0; tree < t->head.roots; tree++) {
        u32 some, moving;

        for (u32 i = 0; i < n; i++)
            at[i] = t->root[tree];
        do {
            moving = 0;
            for (u32 i = 0; i < n; i++) {
                const u32 *node = nodes + 16 * (size_t)at[i];
                u32 leaf = node[14] & CLASSIFIER_LEAF;

                at[i] = leaf ? at[i] : node[15] + classifier_less(node, x[i][node[14] & 15], 14);
                moving |= !leaf;
            }
        } while (moving);
        some = 0;
        for (u32 i = 0; i < n; i++) {
            const u32 *node = nodes + 16 * (size_t)at[i];

            at[i] = node[15];
            left[i] = node[14] & ~CLASSIFIER_LEAF;
            live[some] = (u8)i;
            some += left[i] > 0;
        }
        while (some) {
            u32 next = 0;

            for (u32 j = 0; j < some; j++) {
                u32 i = live[j];
                const u32 *group = groups + size * (size_t)at[i], *rules = group + 16 * (size_t)words;
                u32 in = classifier_inside(group, x[i], words), first = (u32)__builtin_ctz(in | 0x80);
                /* Behind the group are later rules only, and where none is left the last is the latest of all. */
                u32 better = in && rules[first] < rule[i], more = !in && rules[7] < rule[i] && left[i] > 1;

                rule[i] = better ? rules[first] : rule[i];
                class[i] = better ? rules[8 + first] : class[i];
                at[i]++;
                left[i]--;
                live[next] = (u8)i;
                next += more;
            }
            some = next;
        }
    }
    for (u32 i = 0; i < n; i++)
        classes[i] = class[i];
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
