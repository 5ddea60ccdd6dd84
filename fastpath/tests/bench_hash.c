/* What the prefetching passes give, and from which size on: the measurement behind MR_CACHE_BYTES. Not a
 * test; run.sh leaves it out. Build with -O3 -march=native, pin to a core, run alone.
 *
 * One packet is one refresh of a uniformly drawn flow and an addition to its value, in bursts of 32. Three
 * forms, interleaved, the median of 41 rounds each in CPU time:
 *     open      open addressing, linear probing, keys and values in the table, half full, no prefetch
 *     bucketed  state/hash.h, no prefetch
 *     two-stage state/hash.h, tokens and buckets of the whole burst first, then its entries
 * The last column is what the gate chooses, against `bucketed` and `open`.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "../state/hash.h"

enum { BURST = 32, PACKETS = 1 << 18, ROUNDS = 41 };

struct key {
    u64 word[2];
};

static struct key *stream;
static u64 sink;

static double seconds(void)
{
    struct timespec t;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static struct key flow(u64 i)
{
    return (struct key){ { 0x0a00000000000000ull + i * 0x10001, 0x11 } };
}

/* ---- open addressing ---- */

struct slot {
    u64 stamp;
    u64 word[2];
    u64 value;
};

struct open {
    struct slot *slot;
    u64 mask;
    struct mr_secret secret;
};

MR_INLINE struct slot *open_find(struct open *o, const u64 *key)
{
    for (u64 at = mr_hash(key, 2, &o->secret) & o->mask;; at = (at + 1) & o->mask) {
        struct slot *s = &o->slot[at];

        if (s->word[1] == 0)
            return NULL;
        if (mr_words_equal(s->word, key, 2))
            return s;
    }
}

MR_OUTLINE void open_burst(struct open *o, const struct key *keys, u64 now)
{
    for (u32 i = 0; i < BURST; i++) {
        struct slot *s = open_find(o, keys[i].word);

        if (s && now - s->stamp < 60000000000ull) {
            s->stamp = now;
            s->value++;
        } else {
            sink++;
        }
    }
}

/* ---- bucketed, for one literal capacity ---- */

#define FORMS(NAME, CAPACITY)                                                                        \
    static const struct shape shape_##NAME = { .key_bytes = 16, .value_bytes = 8,                    \
                                               .capacity = CAPACITY, .expire_after = 60000000000ull }; \
    MR_INLINE void packet_##NAME(struct hash *h, const struct key *key, u64 token,                    \
                                 struct mr_packet *pkt)                                               \
    {                                                                                                 \
        u8 *value = hash_map_refresh(h, &shape_##NAME, key->word, token, pkt);                        \
                                                                                                      \
        if (value)                                                                                    \
            mr_store64(value, mr_load64(value) + 1);                                                  \
        else                                                                                          \
            sink++;                                                                                   \
    }                                                                                                 \
    MR_OUTLINE void fill_##NAME(struct hash *h, struct mr_packet *pkt)                                \
    {                                                                                                 \
        for (u64 i = 0; i < CAPACITY; i++) {                                                          \
            struct key key = flow(i);                                                                 \
            u64 value = 0;                                                                            \
                                                                                                      \
            hash_map_put(h, &shape_##NAME, key.word, hash_token(h, &shape_##NAME, key.word),          \
                         (u8 *)&value, pkt);                                                          \
        }                                                                                             \
    }                                                                                                 \
    MR_OUTLINE void plain_##NAME(struct hash *h, const struct key *keys, struct mr_packet *pkt)       \
    {                                                                                                 \
        for (u32 i = 0; i < BURST; i++) {                                                             \
            struct key key = keys[i];                                                                 \
                                                                                                      \
            packet_##NAME(h, &key, hash_token(h, &shape_##NAME, key.word), pkt);                      \
        }                                                                                             \
    }                                                                                                 \
    MR_OUTLINE void staged_##NAME(struct hash *h, const struct key *keys, struct mr_packet *pkt)      \
    {                                                                                                 \
        u64 token[BURST];                                                                             \
                                                                                                      \
        for (u32 i = 0; i < BURST; i++) {                                                             \
            token[i] = hash_token(h, &shape_##NAME, keys[i].word);                                    \
            hash_prefetch(h, &shape_##NAME, token[i]);                                                \
        }                                                                                             \
        for (u32 i = 0; i < BURST; i++)                                                               \
            token[i] = hash_prefetch_entry(h, &shape_##NAME, token[i]);                               \
        for (u32 i = 0; i < BURST; i++) {                                                             \
            struct key key = keys[i];                                                                 \
                                                                                                      \
            packet_##NAME(h, &key, token[i], pkt);                                                    \
        }                                                                                             \
    }                                                                                                 \
    MR_OUTLINE void gated_##NAME(struct hash *h, const struct key *keys, struct mr_packet *pkt)       \
    {                                                                                                 \
        if (hash_cold(h, &shape_##NAME))                                                              \
            staged_##NAME(h, keys, pkt);                                                              \
        else                                                                                          \
            plain_##NAME(h, keys, pkt);                                                               \
    }

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

typedef void burst_fn(struct hash *, const struct key *, struct mr_packet *);

typedef void fill_fn(struct hash *, struct mr_packet *);

static void measure(const struct shape *s, fill_fn *fill, burst_fn *plain, burst_fn *staged, burst_fn *gated)
{
    struct mr_config config = { .hash_seed = 1 };
    struct mr_packet pkt = { .time = 1000 };
    u64 flows = s->capacity, size = mr_power_of_two(2 * flows);
    struct open o = { .slot = mr_map_memory(size * sizeof(struct slot)), .mask = size - 1, .secret = mr_secret(2) };
    double ns[4][ROUNDS], insert;
    struct hash h;

    if (!o.slot || hash_create(&h, s, &config, NULL)) {
        printf("no memory for %llu flows\n", (unsigned long long)flows);
        return;
    }
    insert = seconds();
    fill(&h, &pkt);
    insert = (seconds() - insert) * 1e9 / (double)flows;
    for (u64 i = 0; i < flows; i++) {
        struct key key = flow(i);
        u64 at = mr_hash(key.word, 2, &o.secret) & o.mask;

        while (o.slot[at].word[1])
            at = (at + 1) & o.mask;
        o.slot[at] = (struct slot){ 1000, { key.word[0], key.word[1] }, 0 };
    }
    for (u64 i = 0; i < PACKETS; i++)
        stream[i] = flow(mr_random(3, i) % flows);
    for (u32 round = 0; round < ROUNDS; round++)
        for (u32 form = 0; form < 4; form++) {
            double start = seconds();

            for (u64 i = 0; i < PACKETS; i += BURST) {
                pkt.time++;
                if (form == 0)
                    open_burst(&o, stream + i, pkt.time);
                else
                    (form == 1 ? plain : form == 2 ? staged : gated)(&h, stream + i, &pkt);
            }
            ns[form][round] = (seconds() - start) * 1e9 / PACKETS;
        }
    for (u32 form = 0; form < 4; form++)
        qsort(ns[form], ROUNDS, sizeof(double), ascending);
    printf("%8llu flows %6.1f MiB: open %6.2f  bucketed %6.2f  two-stage %6.2f ns; gate %s: %5.2f of bucketed, %5.2f of open; insert %5.1f ns\n",
           (unsigned long long)flows, (double)(flows * table_stride(s, 8) + 64 * ((u64)h.table.mask + 1)) / (1 << 20), ns[0][ROUNDS / 2], ns[1][ROUNDS / 2],
           ns[2][ROUNDS / 2], hash_cold(&h, s) ? "on " : "off", ns[3][ROUNDS / 2] / ns[1][ROUNDS / 2],
           ns[3][ROUNDS / 2] / ns[0][ROUNDS / 2], insert);
    hash_destroy(&h, s);
    mr_unmap_memory(o.slot, size * sizeof(struct slot));
}

#define SIZES(DO) DO(1k, 1 << 10) DO(4k, 1 << 12) DO(8k, 1 << 13) DO(16k, 1 << 14) DO(32k, 1 << 15) \
    DO(64k, 1 << 16) DO(128k, 1 << 17) DO(256k, 1 << 18) DO(1m, 1 << 20)

SIZES(FORMS)

int main(void)
{
    stream = mr_map_memory(PACKETS * sizeof(struct key));
    if (!stream)
        return 1;
#define MEASURE(NAME, CAPACITY) measure(&shape_##NAME, fill_##NAME, plain_##NAME, staged_##NAME, gated_##NAME);
    SIZES(MEASURE)
    return sink != 0;
}
