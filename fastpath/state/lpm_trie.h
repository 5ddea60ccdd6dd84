/* The trie under `lpm`: which stored prefix of an address is the longest.
 *
 * A binary trie without one-way nodes (Morrison: PATRICIA, J. ACM 15(4), 1968, with the bits kept in
 * the nodes): a node is a prefix, and either it is stored or it has two children. n stored prefixes thus
 * have at most 2n - 1 nodes, and 2 * capacity always suffice. A walk goes down at most one node a bit;
 * nothing recurses.
 *
 * Objects of more than LPM_DIRECT entries and more than 16 address bits have a table by the first 16
 * bits besides: the first node of 16 bits or more on the way down, and the value of the longest stored
 * prefix of fewer. A lookup then begins there. Storing or deleting a prefix of b < 16 bits writes up to
 * 2^(16 - b) rows of it.
 *
 * Addresses are kept as words whose most significant bit comes first in the packet.
 *
 * Memory, each part rounded up to 64 bytes:
 *     nodes    2 * capacity * n, n = 16 + 8 * ceil(address_bytes / 8); up to 64 the next power of two
 *     values   capacity * round_up(value_bytes, 8)
 *     owners   capacity * 4
 *     direct   65536 * 8 if capacity > LPM_DIRECT and address_bytes > 2, else 0
 */
#ifndef MR_LPM_TRIE_H
#define MR_LPM_TRIE_H

#include "../base.h"

#define LPM_DIRECT 256u
#define LPM_ADDRESS_BYTES_MAX 256u
#define LPM_WORDS_MAX (LPM_ADDRESS_BYTES_MAX / 8)
#define LPM_FREE 0x80000000u /* of an owner: no value is stored here; the rest names the next free one */
#define LPM_NIL 0x7fffffffu

struct lpm_node {
    u32 child[2]; /* by the bit after the prefix; of a free node, child[0] is the next free one */
    u32 bits;
    u32 value; /* MR_NONE: not stored */
    u64 word[];
};

struct lpm_row {
    u32 start;
    u32 value;
};

struct lpm_trie {
    u8 *nodes;
    u8 *values;
    u32 *owner; /* of each value: its node */
    struct lpm_row *direct;
    u32 top;
    u32 free_node;
    u32 free_value;
    u32 used;       /* values */
    u32 used_nodes;
};

/* What a trie needs to know of the shape: emitted literals fold. */
struct lpm_form {
    u32 words;
    u32 address_bytes;
};

MR_INLINE u64 lpm_node_bytes(struct lpm_form f)
{
    u64 raw = sizeof(struct lpm_node) + 8 * (u64)f.words;

    return raw <= 64 ? mr_power_of_two(raw) : raw;
}

MR_INLINE int lpm_has_direct(const struct shape *s, struct lpm_form f)
{
    return s->capacity > LPM_DIRECT && f.address_bytes > 2;
}

MR_INLINE u64 lpm_value_bytes(const struct shape *s) { return mr_round_up(s->value_bytes, 8) + MR_GAP; }

MR_INLINE u64 lpm_trie_part(const struct shape *s, struct lpm_form f)
{
    return mr_part(2 * s->capacity * lpm_node_bytes(f)) + mr_part(s->capacity * lpm_value_bytes(s)) +
           mr_part(4 * s->capacity) +
           (lpm_has_direct(s, f) ? 65536 * sizeof(struct lpm_row) : 0);
}

MR_INLINE struct lpm_node *lpm_node(const struct lpm_trie *t, struct lpm_form f, u32 node)
{
    return (struct lpm_node *)(t->nodes + node * lpm_node_bytes(f));
}

MR_INLINE u8 *lpm_value(const struct lpm_trie *t, const struct shape *s, u32 value)
{
    return value == MR_NONE ? NULL : t->values + value * lpm_value_bytes(s);
}

static inline void lpm_trie_create(struct lpm_trie *t, const struct shape *s, struct lpm_form f,
                                   u8 *memory)
{
    t->nodes = mr_take(&memory, 2 * s->capacity * lpm_node_bytes(f));
    t->values = mr_take(&memory, s->capacity * lpm_value_bytes(s));
    mr_forbid(t->values, s->capacity * lpm_value_bytes(s));
    t->owner = (u32 *)mr_take(&memory, 4 * s->capacity);
    t->direct = lpm_has_direct(s, f) ? (struct lpm_row *)memory : NULL;
    t->top = MR_NONE;
    t->free_node = 0;
    for (u32 i = 0; i < 2 * s->capacity; i++)
        lpm_node(t, f, i)->child[0] = i + 1 < 2 * s->capacity ? i + 1 : MR_NONE;
    t->free_value = 0;
    for (u32 i = 0; i < s->capacity; i++)
        t->owner[i] = LPM_FREE | (i + 1 < s->capacity ? i + 1 : LPM_NIL);
    for (u32 i = 0; t->direct && i < 65536; i++)
        t->direct[i] = (struct lpm_row){ MR_NONE, MR_NONE };
}

MR_INLINE u32 lpm_bit(struct lpm_form f, const u64 *word, u32 bit)
{
    return (f.words == 1 ? word[0] : word[bit / 64]) >> (63 - bit % 64) & 1;
}

/* How many of the first `limit` bits two addresses share. */
MR_INLINE u32 lpm_common(struct lpm_form f, const u64 *a, const u64 *b, u32 limit)
{
    for (u32 i = 0; i < f.words && 64 * i < limit; i++) {
        u64 differ = a[i] ^ b[i];

        if (differ) {
            u32 common = 64 * i + (u32)__builtin_clzll(differ);

            return common < limit ? common : limit;
        }
    }
    return limit;
}

/* The address with all bits from `bits` on cleared. */
MR_INLINE void lpm_cut(struct lpm_form f, u64 *to, const u64 *from, u32 bits)
{
    for (u32 i = 0; i < f.words; i++) {
        u32 keep = bits <= 64 * i ? 0 : bits - 64 * i;

        to[i] = keep >= 64 ? from[i] : keep ? from[i] & ~(~0ull >> keep) : 0;
    }
}

/* The value of the longest stored prefix of `word` of at most `limit` bits, or MR_NONE. */
MR_INLINE u32 lpm_longest(const struct lpm_trie *t, const struct shape *s, struct lpm_form f,
                          const u64 *word, u32 limit)
{
    u32 at = t->top, best = MR_NONE;

    if (lpm_has_direct(s, f) && limit >= 16) {
        const struct lpm_row *row = &t->direct[word[0] >> 48];

        at = row->start;
        best = row->value;
    }
    while (at != MR_NONE) {
        const struct lpm_node *n = lpm_node(t, f, at);

        if (n->bits > limit || lpm_common(f, n->word, word, n->bits) < n->bits)
            break;
        best = n->value != MR_NONE ? n->value : best;
        if (n->bits == 8 * f.address_bytes)
            break;
        at = n->child[lpm_bit(f, word, n->bits)];
    }
    return best;
}

/* ---- the table by the first 16 bits ---- */

/* After a change at a prefix of 16 bits or more: only the row of its own first 16 bits can differ. */
MR_INLINE void lpm_direct_start(struct lpm_trie *t, struct lpm_form f, const u64 *word)
{
    u32 at = t->top;
    u64 first = word[0] >> 48;

    while (at != MR_NONE) {
        const struct lpm_node *n = lpm_node(t, f, at);

        if (lpm_common(f, n->word, word, n->bits < 16 ? n->bits : 16) < n->bits && n->bits < 16) {
            at = MR_NONE;
        } else if (n->bits >= 16) {
            if (n->word[0] >> 48 != first)
                at = MR_NONE;
            break;
        } else {
            at = n->child[lpm_bit(f, word, n->bits)];
        }
    }
    t->direct[first].start = at;
}

/* After storing a prefix of fewer than 16 bits under `value`. */
MR_INLINE void lpm_direct_cover(struct lpm_trie *t, struct lpm_form f, const u64 *word, u32 bits,
                                u32 value)
{
    u32 first = (u32)(word[0] >> 48);

    for (u32 i = first; i < first + (1u << (16 - bits)); i++) {
        u32 other = t->direct[i].value;

        if (other == MR_NONE || lpm_node(t, f, t->owner[other])->bits < bits)
            t->direct[i].value = value;
    }
}

/* After deleting one: the next shorter stored prefix is the same for every row that had it. */
MR_INLINE void lpm_direct_uncover(struct lpm_trie *t, const u64 *word, u32 bits, u32 value, u32 shorter)
{
    u32 first = (u32)(word[0] >> 48);

    for (u32 i = first; i < first + (1u << (16 - bits)); i++)
        if (t->direct[i].value == value)
            t->direct[i].value = shorter;
}

/* ---- changes ---- */

MR_INLINE u32 lpm_take_node(struct lpm_trie *t, struct lpm_form f, const u64 *word, u32 bits, u32 value)
{
    u32 at = t->free_node;
    struct lpm_node *n = lpm_node(t, f, at);

    t->free_node = n->child[0];
    t->used_nodes++;
    n->child[0] = n->child[1] = MR_NONE;
    n->bits = bits;
    n->value = value;
    lpm_cut(f, n->word, word, bits);
    return at;
}

MR_INLINE void lpm_give_node(struct lpm_trie *t, struct lpm_form f, u32 at)
{
    lpm_node(t, f, at)->child[0] = t->free_node;
    t->free_node = at;
    t->used_nodes--;
}

/* The node that is exactly this prefix and stored, or MR_NONE. */
MR_INLINE u32 lpm_exact(const struct lpm_trie *t, struct lpm_form f, const u64 *word, u32 bits)
{
    u32 at = t->top;

    while (at != MR_NONE) {
        const struct lpm_node *n = lpm_node(t, f, at);

        if (n->bits > bits || lpm_common(f, n->word, word, n->bits) < n->bits)
            return MR_NONE;
        if (n->bits == bits)
            return n->value == MR_NONE ? MR_NONE : at;
        at = n->child[lpm_bit(f, word, n->bits)];
    }
    return MR_NONE;
}

/* Stores a prefix that is not stored; there must be a free value. Gives the value's index. */
static inline u32 lpm_insert(struct lpm_trie *t, const struct shape *s, struct lpm_form f,
                             const u64 *word, u32 bits)
{
    u32 value = t->free_value;
    u32 *link = &t->top;
    u64 prefix[LPM_WORDS_MAX];
    u32 at;

    lpm_cut(f, prefix, word, bits);
    for (;;) {
        struct lpm_node *n;
        u32 common;

        at = *link;
        if (at == MR_NONE) {
            *link = at = lpm_take_node(t, f, prefix, bits, value);
            break;
        }
        n = lpm_node(t, f, at);
        common = lpm_common(f, n->word, prefix, n->bits < bits ? n->bits : bits);
        if (common == n->bits && common == bits) {
            n->value = value;
            break;
        }
        if (common == n->bits) {
            link = &n->child[lpm_bit(f, prefix, common)];
        } else if (common == bits) {
            u32 above = lpm_take_node(t, f, prefix, bits, value);

            lpm_node(t, f, above)->child[lpm_bit(f, n->word, common)] = at;
            *link = at = above;
            break;
        } else {
            u32 fork = lpm_take_node(t, f, prefix, common, MR_NONE);
            u32 leaf = lpm_take_node(t, f, prefix, bits, value);

            lpm_node(t, f, fork)->child[lpm_bit(f, n->word, common)] = at;
            lpm_node(t, f, fork)->child[lpm_bit(f, prefix, common)] = leaf;
            *link = fork;
            at = leaf;
            break;
        }
    }
    t->free_value = t->owner[value] & ~LPM_FREE;
    t->owner[value] = at;
    t->used++;
    if (lpm_has_direct(s, f)) {
        if (bits < 16)
            lpm_direct_cover(t, f, prefix, bits, value);
        else
            lpm_direct_start(t, f, prefix);
    }
    return value;
}

/* Deletes a stored prefix; 0 if it is not stored. */
static inline int lpm_erase(struct lpm_trie *t, const struct shape *s, struct lpm_form f,
                            const u64 *word, u32 bits)
{
    u32 *link = &t->top, *above = NULL;
    u32 shorter = MR_NONE, value, at;
    u64 prefix[LPM_WORDS_MAX];
    struct lpm_node *n;

    for (;;) {
        at = *link;
        if (at == MR_NONE)
            return 0;
        n = lpm_node(t, f, at);
        if (n->bits > bits || lpm_common(f, n->word, word, n->bits) < n->bits)
            return 0;
        if (n->bits == bits)
            break;
        if (n->value != MR_NONE)
            shorter = n->value;
        above = link;
        link = &n->child[lpm_bit(f, word, n->bits)];
    }
    value = n->value;
    if (value == MR_NONE)
        return 0;
    lpm_cut(f, prefix, word, bits);
    n->value = MR_NONE;
    t->owner[value] = LPM_FREE | t->free_value;
    t->free_value = value;
    t->used--;
    if (n->child[0] == MR_NONE || n->child[1] == MR_NONE) {
        *link = n->child[n->child[0] == MR_NONE];
        lpm_give_node(t, f, at);
        if (*link == MR_NONE && above) {
            u32 fork = *above;
            struct lpm_node *m = lpm_node(t, f, fork);

            /* A node that is not stored must not be left with one child. */
            if (m->value == MR_NONE) {
                *above = m->child[m->child[0] == MR_NONE];
                lpm_give_node(t, f, fork);
            }
        }
    }
    if (lpm_has_direct(s, f)) {
        if (bits < 16)
            lpm_direct_uncover(t, prefix, bits, value, shorter);
        else
            lpm_direct_start(t, f, prefix);
    }
    return 1;
}

#endif
