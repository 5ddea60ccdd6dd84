/* bloom_filter: whether a value was put in, or probably. Serves BPF's BLOOM_FILTER (Bloom: Space/time
 * trade-offs in hash coding with allowable errors, CACM 13(7), 1970).
 *
 * Contract (kernel/bpf/bloom_filter.c). `rows` hash functions, 1 to 15. `map_push_elem`: -EINVAL for any
 * flag, else the value is in. `map_peek_elem`: 0 for every value that is in, and for some that are not;
 * -ENOENT for all others. Nothing can be taken out, and nothing is ever full: beyond `capacity` values
 * there are only more false positives.
 *
 * The number of bits is the kernel's: capacity * rows * 7 / 5, which is n k / ln 2 (the number at which
 * half of the bits are set by n values, and false positives are 2^-k), rounded up to a power of two. Which
 * bits belong to a value is not: the kernel draws a seed for each map, and here they depend on sketch_seed,
 * because false positives can be seen. Bits are h1 + i h2 for i < rows (Kirsch and Mitzenmacher: Less
 * hashing, same performance, ESA 2006), both halves of one hash, h2 odd.
 *
 * Control: no key; `set` puts a value in.
 *
 * Cost: a line a hash function. Memory: bytes = mapped(bits / 8).
 */
#ifndef MR_BLOOM_FILTER_H
#define MR_BLOOM_FILTER_H

#include "../base.h"

#define BLOOM_FILTER_ROWS_MAX 15u
#define BLOOM_FILTER_BITS_MAX (1ull << 32)

struct bloom_filter {
    u64 *word;
    struct mr_secret secret;
    u64 seed; /* what it is made from */
};

MR_INLINE u64 bloom_filter_bits(const struct shape *s)
{
    u64 bits = s->capacity * s->rows / 5 * 7;

    if (bits > 1ull << 31)
        return BLOOM_FILTER_BITS_MAX;
    return mr_power_of_two(bits < 64 ? 64 : bits);
}

MR_INLINE u64 bloom_filter_bytes(const struct shape *s) { return mr_mapped_bytes(bloom_filter_bits(s) / 8); }

static inline int bloom_filter_create(struct bloom_filter *b, const struct shape *s,
                                      const struct mr_config *config, const u8 *initial)
{
    (void)initial;
    *b = (struct bloom_filter){0};
    if (s->value_bytes == 0 || s->capacity == 0 || s->rows == 0 || s->rows > BLOOM_FILTER_ROWS_MAX)
        return -EINVAL;
    if (s->capacity > MR_CAPACITY_MAX)
        return -E2BIG;
    b->word = mr_map_memory(bloom_filter_bits(s) / 8);
    b->seed = config->sketch_seed;
    b->secret = mr_secret(b->seed);
    return b->word ? 0 : -ENOMEM;
}

static inline void bloom_filter_destroy(struct bloom_filter *b, const struct shape *s)
{
    mr_unmap_memory(b->word, bloom_filter_bits(s) / 8);
    b->word = NULL;
}

/* mr_hash, of bytes at any address, each read once: somebody else may write them meanwhile. */
MR_INLINE u64 bloom_filter_hash(const struct bloom_filter *b, const struct shape *s, const u8 *value)
{
    u64 h = b->secret.word[0];
    u32 at = 0;

    for (; at + 8 <= s->value_bytes; at += 8)
        h = mr_fold(mr_load64(value + at) ^ b->secret.word[1], h ^ b->secret.word[2]);
    if (at < s->value_bytes) {
        u64 rest = 0;

        memcpy(&rest, value + at, s->value_bytes - at);
        h = mr_fold(rest ^ b->secret.word[1], h ^ b->secret.word[2]);
    }
    return mr_fold(h ^ b->secret.word[2], b->secret.word[3]);
}

MR_INLINE u64 bloom_filter_bit(const struct shape *s, u64 hash, u32 i)
{
    return ((u32)hash + i * (u64)((u32)(hash >> 32) | 1)) & (bloom_filter_bits(s) - 1);
}

MR_INLINE u64 bloom_filter_map_push_elem(struct bloom_filter *b, const struct shape *s, const u8 *value,
                                         u64 flags, struct mr_packet *pkt)
{
    u64 hash;

    (void)pkt;
    if (flags)
        return mr_errno(EINVAL);
    hash = bloom_filter_hash(b, s, value);
    for (u32 i = 0; i < s->rows; i++) {
        u64 bit = bloom_filter_bit(s, hash, i);

        b->word[bit / 64] |= 1ull << bit % 64;
    }
    return 0;
}

/* Reads `value`, though other kinds write it: what is asked is whether it is in. */
MR_INLINE u64 bloom_filter_map_peek_elem(struct bloom_filter *b, const struct shape *s, u8 *value,
                                         struct mr_packet *pkt)
{
    u64 hash = bloom_filter_hash(b, s, value);

    (void)pkt;
    for (u32 i = 0; i < s->rows; i++) {
        u64 bit = bloom_filter_bit(s, hash, i);

        if (!(b->word[bit / 64] >> bit % 64 & 1))
            return mr_errno(ENOENT);
    }
    return 0;
}

/* ---- control ---- */

static inline int bloom_filter_set(struct bloom_filter *b, const struct shape *s, const u8 *key,
                                   const u8 *value, u64 now)
{
    (void)key;
    (void)now;
    return (int)bloom_filter_map_push_elem(b, s, value, 0, NULL);
}

/* ---- save and load: with the seed ---- */

static inline int bloom_filter_save(struct bloom_filter *b, const struct shape *s, mr_saved_fn *fn, void *context)
{
    struct mr_saved head = {
        .what = MR_SAVED_HEAD, .bound = s->rows, .order = b->seed, .length = bloom_filter_bits(s) / 8
    };
    int error = fn(context, &head);

    if (!error)
        error = mr_save_bytes((const u8 *)b->word, bloom_filter_bits(s) / 8, fn, context);
    return error ? error : fn(context, &(struct mr_saved){ .what = MR_SAVED_END });
}

static inline int bloom_filter_load(struct bloom_filter *b, const struct shape *s, const struct mr_saved *piece,
                                    u64 now)
{
    (void)now;
    switch (piece->what) {
    case MR_SAVED_HEAD:
        if (piece->length != bloom_filter_bits(s) / 8 || piece->bound != s->rows)
            return -EDOM;
        memset(b->word, 0, bloom_filter_bits(s) / 8);
        b->seed = piece->order;
        b->secret = mr_secret(b->seed);
        return 0;
    case MR_SAVED_BYTES:
        return mr_load_bytes((u8 *)b->word, bloom_filter_bits(s) / 8, piece);
    case MR_SAVED_END:
        return 0;
    default:
        return -EINVAL;
    }
}

#endif
