/* lpm: values by address prefix, looked up by longest match. Serves the handlers' LPM and BPF's
 * LPM_TRIE.
 *
 * The two differ in the key. A handler's is the address, `key_bytes` of it in network order, and the
 * prefix length is an argument of its own. BPF's is { u32 prefixlen; u8 address[key_bytes - 4] }, and a
 * lookup finds no prefix longer than its prefixlen. Which of the two an object is, is read off
 * map_flags: the kernel takes no LPM_TRIE without BPF_F_NO_PREALLOC, and handlers have no flags.
 * Addresses are 1 to 256 bytes. Bits of a prefix beyond its length do not matter.
 *
 * Contract. Exactly `capacity` prefixes fit. Full: `lpm_put` returns null, `map_update_elem` -ENOSPC;
 * overwriting a stored prefix always works. `map_update_elem` also: -EINVAL for flags above BPF_EXIST or
 * a prefixlen above the address's bits, -EEXIST, -ENOENT; `map_delete_elem`: -EINVAL, -ENOENT;
 * `map_lookup_elem` with too long a prefixlen: null. These are the errors of kernels from 6.13: older ones
 * ignore BPF_NOEXIST and BPF_EXIST and refuse to overwrite when full.
 * Pointers to values stay readable as in hash.h; overwriting is in place, where the kernel's goes to
 * another place.
 *
 * Control sees handlers' prefixes as BPF's, { u32 prefixlen; u8 address[key_bytes] }: get is a longest match among
 * those that are no longer, set and remove are of that prefix, next visits every prefix with its length.
 *
 * Cost: lpm_trie.h. Memory: bytes = mapped(trie), trie as in lpm_trie.h with address_bytes as above.
 */
#ifndef MR_LPM_H
#define MR_LPM_H

#include "lpm_trie.h"

#define LPM_NO_PREALLOC 1u

struct lpm {
    struct lpm_trie trie;
};

MR_INLINE int lpm_is_bpf(const struct shape *s) { return (s->flags & LPM_NO_PREALLOC) != 0; }

MR_INLINE struct lpm_form lpm_form(const struct shape *s)
{
    u32 bytes = s->key_bytes - (lpm_is_bpf(s) ? 4 : 0);

    return (struct lpm_form){ mr_words(bytes), bytes };
}

MR_INLINE u64 lpm_bytes(const struct shape *s)
{
    return mr_mapped_bytes(lpm_trie_part(s, lpm_form(s)));
}

static inline int lpm_create(struct lpm *l, const struct shape *s, const struct mr_config *config,
                             const u8 *initial)
{
    u32 prefixlen = lpm_is_bpf(s) ? 4 : 0;
    u8 *memory;

    (void)config;
    (void)initial;
    *l = (struct lpm){0};
    if (s->key_bytes <= prefixlen || s->key_bytes - prefixlen > LPM_ADDRESS_BYTES_MAX ||
        s->value_bytes == 0 || s->capacity == 0)
        return -EINVAL;
    if (s->capacity > MR_CAPACITY_MAX / 2)
        return -E2BIG;
    memory = mr_map_memory(lpm_trie_part(s, lpm_form(s)));
    if (!memory)
        return -ENOMEM;
    lpm_trie_create(&l->trie, s, lpm_form(s), memory);
    return 0;
}

/* The nodes are the first part of the mapping. */
static inline void lpm_destroy(struct lpm *l, const struct shape *s)
{
    mr_unmap_memory(l->trie.nodes, lpm_trie_part(s, lpm_form(s)));
    *l = (struct lpm){0};
}

/* The address of a key, as words whose most significant bit comes first. */
MR_INLINE void lpm_address(const struct shape *s, const u64 *key, u64 *word)
{
    u32 words = lpm_form(s).words;

    for (u32 i = 0; i < words; i++) {
        u64 raw = key[i];

        if (lpm_is_bpf(s)) {
            raw >>= 32;
            if (i + 1 < mr_words(s->key_bytes))
                raw |= key[i + 1] << 32;
        }
        word[i] = __builtin_bswap64(raw);
    }
}

MR_INLINE u32 lpm_bits(const struct shape *s) { return 8 * lpm_form(s).address_bytes; }

MR_INLINE u8 *lpm_find(const struct lpm *l, const struct shape *s, const u64 *key, u64 limit)
{
    u64 word[LPM_WORDS_MAX];

    if (limit > lpm_bits(s))
        return NULL;
    lpm_address(s, key, word);
    return lpm_value(&l->trie, s, lpm_longest(&l->trie, s, lpm_form(s), word, (u32)limit));
}

enum lpm_rule { LPM_ANY, LPM_NOEXIST, LPM_EXIST };

/* The value that is to be written, or NULL and why. */
MR_OUTLINE u8 *lpm_store(struct lpm *l, const struct shape *s, const u64 *key, u64 bits, u64 rule,
                         int *error)
{
    struct lpm_form f = lpm_form(s);
    u64 word[LPM_WORDS_MAX];
    u32 node, value;

    lpm_address(s, key, word);
    *error = 0;
    if (bits > lpm_bits(s)) {
        *error = -EINVAL;
        return NULL;
    }
    node = lpm_exact(&l->trie, f, word, (u32)bits);
    if (node != MR_NONE && rule == LPM_NOEXIST)
        *error = -EEXIST;
    else if (node == MR_NONE && rule == LPM_EXIST)
        *error = -ENOENT;
    else if (node == MR_NONE && l->trie.used == s->capacity)
        *error = -ENOSPC;
    if (*error)
        return NULL;
    value = node != MR_NONE ? lpm_node(&l->trie, f, node)->value
                            : lpm_insert(&l->trie, s, f, word, (u32)bits);
    mr_allow(lpm_value(&l->trie, s, value), s->value_bytes);
    return lpm_value(&l->trie, s, value);
}

MR_OUTLINE int lpm_drop(struct lpm *l, const struct shape *s, const u64 *key, u64 bits)
{
    u64 word[LPM_WORDS_MAX];

    if (bits > lpm_bits(s))
        return -EINVAL;
    lpm_address(s, key, word);
    return lpm_erase(&l->trie, s, lpm_form(s), word, (u32)bits) ? 0 : -ENOENT;
}

/* ---- for the prefetching passes: the token is the first 64 bits of the address ---- */

MR_INLINE u64 lpm_token(const struct lpm *l, const struct shape *s, const u64 *key)
{
    u64 word[LPM_WORDS_MAX];

    (void)l;
    lpm_address(s, key, word);
    return word[0];
}

MR_INLINE void lpm_prefetch(const struct lpm *l, const struct shape *s, u64 token)
{
    if (lpm_has_direct(s, lpm_form(s)))
        mr_prefetch(&l->trie.direct[token >> 48]);
}

/* Row in cache: the first node of the way down. Those after it are not known yet. */
MR_INLINE u64 lpm_prefetch_entry(const struct lpm *l, const struct shape *s, u64 token)
{
    if (lpm_has_direct(s, lpm_form(s))) {
        u32 start = l->trie.direct[token >> 48].start;

        mr_prefetch(lpm_node(&l->trie, lpm_form(s), start == MR_NONE ? 0 : start));
    }
    return token;
}

MR_INLINE int lpm_cold(const struct lpm *l, const struct shape *s)
{
    u64 live = l->trie.used_nodes * lpm_node_bytes(lpm_form(s)) + l->trie.used * lpm_value_bytes(s);

    return live > MR_CACHE_BYTES;
}

/* ---- handlers ---- */

MR_INLINE u8 *lpm_lpm_get(struct lpm *l, const struct shape *s, const u64 *key, u64 token,
                          struct mr_packet *pkt)
{
    (void)token;
    (void)pkt;
    return lpm_find(l, s, key, lpm_bits(s));
}

MR_INLINE u8 *lpm_lpm_put(struct lpm *l, const struct shape *s, const u64 *key, u64 token, u64 bits,
                          const u8 *value, struct mr_packet *pkt)
{
    int error;
    u8 *to = lpm_store(l, s, key, bits, LPM_ANY, &error);

    (void)token;
    (void)pkt;
    if (to)
        memcpy(to, value, s->value_bytes);
    return to;
}

MR_INLINE u64 lpm_lpm_delete(struct lpm *l, const struct shape *s, const u64 *key, u64 token, u64 bits,
                             struct mr_packet *pkt)
{
    (void)token;
    (void)pkt;
    return lpm_drop(l, s, key, bits) == 0;
}

/* ---- BPF ---- */

MR_INLINE u8 *lpm_map_lookup_elem(struct lpm *l, const struct shape *s, const u64 *key, u64 token,
                                  struct mr_packet *pkt)
{
    (void)token;
    (void)pkt;
    return lpm_find(l, s, key, (u32)key[0]);
}

MR_INLINE u64 lpm_map_update_elem(struct lpm *l, const struct shape *s, const u64 *key, u64 token,
                                  const u8 *value, u64 flags, struct mr_packet *pkt)
{
    int error;
    u8 *to;

    (void)token;
    (void)pkt;
    if (flags > LPM_EXIST)
        return mr_errno(EINVAL);
    to = lpm_store(l, s, key, (u32)key[0], flags, &error);
    if (!to)
        return (u64)(s64)error;
    memcpy(to, value, s->value_bytes);
    return 0;
}

MR_INLINE u64 lpm_map_delete_elem(struct lpm *l, const struct shape *s, const u64 *key, u64 token,
                                  struct mr_packet *pkt)
{
    (void)token;
    (void)pkt;
    return (u64)(s64)lpm_drop(l, s, key, (u32)key[0]);
}

/* ---- control, between bursts ---- */

static inline u64 lpm_count(struct lpm *l, const struct shape *s, u64 now)
{
    (void)s;
    (void)now;
    return l->trie.used;
}

static inline u64 lpm_used(struct lpm *l, const struct shape *s, u64 now)
{
    (void)s;
    (void)now;
    return l->trie.used;
}

/* The words of a control key, as packets' keys are; how many bits of it count. */
MR_INLINE u64 lpm_control(const struct shape *s, const u8 *key, u64 *word)
{
    mr_pad_key(word, key + (lpm_is_bpf(s) ? 0 : 4), s->key_bytes);
    return mr_load32(key);
}

static inline int lpm_get(struct lpm *l, const struct shape *s, const u8 *key, u8 *value, u64 now)
{
    u64 word[MR_KEY_WORDS_MAX], bits = lpm_control(s, key, word);
    const u8 *from = lpm_find(l, s, word, bits);

    (void)now;
    if (!from)
        return -ENOENT;
    memcpy(value, from, s->value_bytes);
    return 0;
}

static inline int lpm_set(struct lpm *l, const struct shape *s, const u8 *key, const u8 *value, u64 now)
{
    u64 word[MR_KEY_WORDS_MAX], bits = lpm_control(s, key, word);
    int error;
    u8 *to = lpm_store(l, s, word, bits, LPM_ANY, &error);

    (void)now;
    if (to)
        memcpy(to, value, s->value_bytes);
    return error;
}

static inline int lpm_remove(struct lpm *l, const struct shape *s, const u8 *key, u64 now)
{
    u64 word[MR_KEY_WORDS_MAX], bits = lpm_control(s, key, word);

    (void)now;
    return lpm_drop(l, s, word, bits);
}

/* The key of a stored prefix, as packets have it; its bits. */
MR_INLINE u32 lpm_key(const struct lpm *l, const struct shape *s, u32 owner, u8 *key)
{
    struct lpm_form f = lpm_form(s);
    const struct lpm_node *n = lpm_node(&l->trie, f, owner);
    u64 word[LPM_WORDS_MAX];

    for (u32 w = 0; w < f.words; w++)
        word[w] = __builtin_bswap64(n->word[w]);
    if (lpm_is_bpf(s))
        mr_store32(key, n->bits);
    memcpy(key + (lpm_is_bpf(s) ? 4 : 0), word, f.address_bytes);
    return n->bits;
}

static inline int lpm_next(struct lpm *l, const struct shape *s, u64 *cursor, u8 *key, u8 *value,
                           u64 now)
{
    (void)now;
    for (u64 i = *cursor; i < s->capacity; i++) {
        if (l->trie.owner[i] & LPM_FREE)
            continue;
        mr_store32(key, lpm_key(l, s, l->trie.owner[i], key + (lpm_is_bpf(s) ? 0 : 4)));
        memcpy(value, lpm_value(&l->trie, s, (u32)i), s->value_bytes);
        *cursor = i + 1;
        return 0;
    }
    *cursor = s->capacity;
    return -ENOENT;
}

/* Prefixes with their bits as `order`: a handler's key does not have them. Nothing shows which place one is in. */
static inline int lpm_save(struct lpm *l, const struct shape *s, mr_saved_fn *fn, void *context)
{
    u8 key[8 * MR_KEY_WORDS_MAX];
    u64 place = 0;
    int error = fn(context, &(struct mr_saved){ .what = MR_SAVED_HEAD });

    for (u64 i = 0; !error && i < s->capacity; i++) {
        struct mr_saved piece = { .what = MR_SAVED_ENTRY, .due = UINT64_MAX, .length = s->value_bytes, .key = key };

        if (l->trie.owner[i] & LPM_FREE)
            continue;
        piece.place = place++;
        piece.order = lpm_key(l, s, l->trie.owner[i], key);
        piece.value = lpm_value(&l->trie, s, (u32)i);
        error = fn(context, &piece);
    }
    return error ? error : fn(context, &(struct mr_saved){ .what = MR_SAVED_END });
}

static inline int lpm_load(struct lpm *l, const struct shape *s, const struct mr_saved *piece, u64 now)
{
    u64 word[MR_KEY_WORDS_MAX];
    u8 *memory = l->trie.nodes, *to;
    int error;

    (void)now;
    switch (piece->what) {
    case MR_SAVED_HEAD:
        *l = (struct lpm){0};
        lpm_trie_create(&l->trie, s, lpm_form(s), memory);
        return 0;
    case MR_SAVED_ENTRY:
        mr_pad_key(word, piece->key, s->key_bytes);
        if (lpm_is_bpf(s) && (u32)word[0] != piece->order)
            return -EINVAL;
        to = lpm_store(l, s, word, piece->order, LPM_NOEXIST, &error);
        if (!to)
            return error == -ENOSPC ? -E2BIG : error;
        memcpy(to, piece->value, s->value_bytes);
        return 0;
    case MR_SAVED_END:
        return 0;
    default:
        return -EINVAL;
    }
}

#endif
