/* sketch: how often keys occurred, in fixed memory: the count-min sketch (Cormode and Muthukrishnan:
 * An improved data stream summary, J. Algorithms 55, 2005, sections 3 and 4.1).
 *
 * Contract. `sketch_count` never gives less than the sum of the amounts that `sketch_add` added for the
 * key in the current window, as far as 32 bits go: a counter that reaches 2^32 - 1 stays there. With
 * w columns, d rows and N the sum of all amounts of the window, the estimate exceeds the true sum by
 * more than N e / w with probability at most e^-d over the seed, as far as the rows' hashes are pairwise
 * independent. Columns are `capacity` rounded up to
 * a power of two, rows 1 to 8. Updates are the plain ones, not conservative: sketches with the same
 * seed and shape add up.
 *
 * Windows are tumbling: with `window` > 0 they are [k window, (k + 1) window) for whole k, and each
 * begins with every count at 0. A counter is reset when it is first touched in a window, so a window's
 * end costs nothing. Time that goes back into an earlier window: amounts are counted in the newest
 * window that a counter has seen, if that is at most 65536 windows ahead. Windows are numbered by 32 bits
 * from the first packet's: a counter untouched for 2^32 windows, less 65536, would show its old count,
 * which errs on the permitted side.
 *
 * Nothing is ever full. An `amount` above 2^32 - 1 counts as that.
 *
 * Cost: one line a row. Which columns: the key is hashed once by sketch_seed to 64 bits, and each row
 * hashes these by its own multiplier and takes the upper bits (multiply-shift; Dietzfelbinger et al.,
 * J. Algorithms 25, 1997, here of the folded product).
 *
 * Memory: bytes = mapped(rows * power_of_two(capacity) * (window ? 8 : 4)).
 */
#ifndef MR_SKETCH_H
#define MR_SKETCH_H

#include "../base.h"

#define SKETCH_ROWS_MAX 8
#define SKETCH_SAMPLE 128 /* counters that are looked at, of a row */

struct sketch {
    u8 *counter; /* rows of u32 counters, or of { u32 count, u32 window } */
    u64 base;    /* the window at creation */
    struct mr_secret secret;
    u64 row[SKETCH_ROWS_MAX][2]; /* a mask and an odd multiplier */
    u64 seed;                    /* what they are made from */
};

static inline void sketch_seed(struct sketch *k, u64 seed)
{
    k->seed = seed;
    k->secret = mr_secret(seed);
    for (u32 r = 0; r < SKETCH_ROWS_MAX; r++) {
        k->row[r][0] = mr_random(seed, 16 + 2 * r);
        k->row[r][1] = mr_random(seed, 17 + 2 * r) | 1;
    }
}

MR_INLINE u64 sketch_columns(const struct shape *s) { return mr_power_of_two(s->capacity); }

MR_INLINE u64 sketch_cell_bytes(const struct shape *s) { return s->window ? 8 : 4; }

MR_INLINE u64 sketch_part(const struct shape *s)
{
    return s->rows * sketch_columns(s) * sketch_cell_bytes(s);
}

MR_INLINE u64 sketch_bytes(const struct shape *s) { return mr_mapped_bytes(sketch_part(s)); }

static inline int sketch_create(struct sketch *k, const struct shape *s, const struct mr_config *config,
                                const u8 *initial)
{
    (void)initial;
    *k = (struct sketch){0};
    if (s->key_bytes == 0 || s->key_bytes > MR_KEY_BYTES_MAX || s->capacity == 0 || s->rows == 0 ||
        s->rows > SKETCH_ROWS_MAX)
        return -EINVAL;
    if (s->capacity > MR_CAPACITY_MAX)
        return -E2BIG;
    k->counter = mr_map_memory(sketch_part(s));
    if (!k->counter)
        return -ENOMEM;
    k->base = s->window ? config->time / s->window : 0;
    sketch_seed(k, config->sketch_seed);
    return 0;
}

static inline void sketch_destroy(struct sketch *k, const struct shape *s)
{
    mr_unmap_memory(k->counter, sketch_part(s));
    *k = (struct sketch){0};
}

MR_INLINE u64 sketch_token(const struct sketch *k, const struct shape *s, const u64 *key)
{
    return mr_hash(key, mr_words(s->key_bytes), &k->secret);
}

MR_INLINE u32 *sketch_cell(const struct sketch *k, const struct shape *s, u64 token, u32 row)
{
    u64 columns = sketch_columns(s);
    u64 column = mr_fold(token ^ k->row[row][0], k->row[row][1]) >> 32 & (columns - 1);

    return (u32 *)(k->counter + (row * columns + column) * sketch_cell_bytes(s));
}

MR_INLINE void sketch_prefetch(const struct sketch *k, const struct shape *s, u64 token)
{
    for (u32 r = 0; r < s->rows; r++)
        mr_prefetch(sketch_cell(k, s, token, r));
}

MR_INLINE u64 sketch_prefetch_entry(const struct sketch *k, const struct shape *s, u64 token)
{
    (void)k;
    (void)s;
    return token;
}

/* Every counter may be hit from the first packet on. */
MR_INLINE int sketch_cold(const struct sketch *k, const struct shape *s)
{
    (void)k;
    return sketch_part(s) > MR_CACHE_BYTES;
}

MR_INLINE u32 sketch_window(const struct sketch *k, const struct shape *s, u64 now)
{
    return s->window ? (u32)(now / s->window - k->base) : 0;
}

/* Whether the cell's count is of another window, and not of one that time went back from. */
MR_INLINE int sketch_stale(const struct shape *s, const u32 *cell, u32 window)
{
    return s->window && cell[1] - window > 65536;
}

MR_INLINE u64 sketch_sketch_count(struct sketch *k, const struct shape *s, const u64 *key, u64 token,
                                  struct mr_packet *pkt)
{
    u32 window = sketch_window(k, s, pkt->time);
    u32 least = UINT32_MAX;

    (void)key;
    for (u32 r = 0; r < s->rows; r++) {
        const u32 *cell = sketch_cell(k, s, token, r);
        u32 count = sketch_stale(s, cell, window) ? 0 : cell[0];

        least = count < least ? count : least;
    }
    return least;
}

MR_INLINE u64 sketch_sketch_add(struct sketch *k, const struct shape *s, const u64 *key, u64 token,
                                u64 amount, struct mr_packet *pkt)
{
    u32 window = sketch_window(k, s, pkt->time);
    u32 add = amount > UINT32_MAX ? UINT32_MAX : (u32)amount;
    u32 least = UINT32_MAX;

    (void)key;
    for (u32 r = 0; r < s->rows; r++) {
        u32 *cell = sketch_cell(k, s, token, r);
        int stale = sketch_stale(s, cell, window);
        u32 count = stale ? 0 : cell[0];

        count = count > UINT32_MAX - add ? UINT32_MAX : count + add;
        cell[0] = count;
        if (s->window && stale)
            cell[1] = window;
        least = count < least ? count : least;
    }
    return least;
}

/* ---- control, between bursts: a key's estimate is its value, if that has 4 bytes ---- */

/* How many counters are not 0. */
static inline u64 sketch_count(struct sketch *k, const struct shape *s, u64 now)
{
    u64 count = 0;

    for (u64 i = 0; i < s->rows * sketch_columns(s); i++) {
        const u32 *cell = (const u32 *)(k->counter + i * sketch_cell_bytes(s));

        count += cell[0] != 0 && !sketch_stale(s, cell, sketch_window(k, s, now));
    }
    return count;
}

/* How many of `capacity` counters of a row are not 0 in the newest window: an estimate from SKETCH_SAMPLE of them, so that it
 * takes constant time. Its standard error is at most capacity / (2 sqrt(SKETCH_SAMPLE)), 4.4 %. */
static inline u64 sketch_used(struct sketch *k, const struct shape *s, u64 now)
{
    u64 columns = sketch_columns(s);
    u64 cells = columns < SKETCH_SAMPLE ? columns : SKETCH_SAMPLE;
    u64 step = columns / cells * sketch_cell_bytes(s);
    u64 used = 0;
    u32 newest = 0;

    (void)now;
    for (u64 i = 0; s->window && i < cells; i++) {
        const u32 *cell = (const u32 *)(k->counter + i * step);

        if (cell[0] != 0 && (s32)(cell[1] - newest) > 0)
            newest = cell[1];
    }
    for (u64 i = 0; i < cells; i++) {
        const u32 *cell = (const u32 *)(k->counter + i * step);

        used += cell[0] != 0 && !sketch_stale(s, cell, newest);
    }
    return used * s->capacity / cells;
}

static inline int sketch_get(struct sketch *k, const struct shape *s, const u8 *key, u8 *value, u64 now)
{
    u64 word[MR_KEY_WORDS_MAX];
    struct mr_packet pkt = { .time = now };

    if (s->value_bytes < 4)
        return -EOPNOTSUPP;
    mr_pad_key(word, key, s->key_bytes);
    mr_store32(value, (u32)sketch_sketch_count(k, s, word, sketch_token(k, s, word), &pkt));
    return 0;
}

/* Makes the estimate of a key this: state that is handed in from outside. Counters belong to many keys at
 * once, so that estimates of others may change, and none can be removed for one key. */
static inline int sketch_set(struct sketch *k, const struct shape *s, const u8 *key, const u8 *value,
                             u64 now)
{
    u64 word[MR_KEY_WORDS_MAX], token;

    if (s->value_bytes < 4)
        return -EOPNOTSUPP;
    mr_pad_key(word, key, s->key_bytes);
    token = sketch_token(k, s, word);
    for (u32 r = 0; r < s->rows; r++) {
        u32 *cell = sketch_cell(k, s, token, r);

        cell[0] = mr_load32(value);
        if (s->window)
            cell[1] = sketch_window(k, s, now);
    }
    return 0;
}

static inline int sketch_remove(struct sketch *k, const struct shape *s, const u8 *key, u64 now)
{
    (void)k;
    (void)s;
    (void)key;
    (void)now;
    return -EOPNOTSUPP;
}

static inline int sketch_next(struct sketch *k, const struct shape *s, u64 *cursor, u8 *key, u8 *value,
                              u64 now)
{
    (void)k;
    (void)s;
    (void)cursor;
    (void)key;
    (void)value;
    (void)now;
    return -ENOENT;
}

/* ---- save and load: with the seed, and the number of the first window ---- */

static inline int sketch_save(struct sketch *k, const struct shape *s, mr_saved_fn *fn, void *context)
{
    struct mr_saved head = {
        .what = MR_SAVED_HEAD, .place = k->base, .bound = s->window, .order = k->seed, .length = sketch_part(s)
    };
    int error = fn(context, &head);

    if (!error)
        error = mr_save_bytes(k->counter, sketch_part(s), fn, context);
    return error ? error : fn(context, &(struct mr_saved){ .what = MR_SAVED_END });
}

static inline int sketch_load(struct sketch *k, const struct shape *s, const struct mr_saved *piece, u64 now)
{
    (void)now;
    switch (piece->what) {
    case MR_SAVED_HEAD:
        if (piece->length != sketch_part(s) || piece->bound != s->window)
            return -EDOM;
        memset(k->counter, 0, sketch_part(s));
        k->base = piece->place;
        sketch_seed(k, piece->order);
        return 0;
    case MR_SAVED_BYTES:
        return mr_load_bytes(k->counter, sketch_part(s), piece);
    case MR_SAVED_END:
        return 0;
    default:
        return -EINVAL;
    }
}

#endif
