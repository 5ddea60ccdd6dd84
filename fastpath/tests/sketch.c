/* sketch against exact counts: never below, and above as rarely as the paper says. */
#include "../state/sketch.h"
#include "check.h"

enum { KEYS = 5000 };

static void bounds(u32 rows, u64 columns, u64 window)
{
    struct shape shape = { .key_bytes = 12, .value_bytes = 4, .capacity = columns, .rows = rows, .window = window };
    const struct shape *s = &shape;
    struct mr_config config = { .sketch_seed = 42, .time = 1763700000000000000ull };
    struct mr_packet pkt = { .time = config.time };
    static u64 exact[KEYS];
    struct sketch k;
    u64 total = 0, over = 0, number = window ? pkt.time / window : 0;

    memset(exact, 0, sizeof(exact));
    CHECK(sketch_create(&k, s, &config, NULL) == 0);
    for (u64 step = 0; step < 40000; step++) {
        u64 which = draw(KEYS) * draw(KEYS) / KEYS, amount = draw(3), estimate, token;
        u64 word[2] = { which * 0x10001, which & 7 };

        pkt.time += 7;
        if (window && pkt.time / window != number) {
            memset(exact, 0, sizeof(exact));
            total = 0;
            number = pkt.time / window;
        }
        token = sketch_token(&k, s, word);
        sketch_prefetch(&k, s, token);
        CHECK(sketch_sketch_count(&k, s, word, token, &pkt) >= exact[which]);
        estimate = sketch_sketch_add(&k, s, word, token, amount, &pkt);
        exact[which] += amount;
        total += amount;
        CHECK(estimate >= exact[which] && estimate <= total);
        CHECK(sketch_sketch_count(&k, s, word, token, &pkt) == estimate);
    }
    for (u64 which = 0; which < KEYS; which++) {
        u64 word[2] = { which * 0x10001, which & 7 };
        u64 estimate = sketch_sketch_count(&k, s, word, sketch_token(&k, s, word), &pkt);
        u32 control;
        u8 key[12];

        CHECK(estimate >= exact[which]);
        over += (double)(estimate - exact[which]) > 2.718281828 * (double)total / (double)sketch_columns(s);
        memcpy(key, word, 12);
        CHECK(sketch_get(&k, s, key, (u8 *)&control, pkt.time) == 0 && control == estimate);
    }
    for (u32 value = 0; value < 100; value++) {
        u32 control;
        u8 key[12] = { (u8)value, 7 };

        pkt.time += window;
        CHECK(sketch_set(&k, s, key, (u8 *)&value, pkt.time) == 0);
        CHECK(sketch_get(&k, s, key, (u8 *)&control, pkt.time) == 0 && control == value);
    }
    /* e^-d of the keys at most; rows 1 to 8 */
    {
        double share = 1;

        for (u32 r = 0; r < rows; r++)
            share /= 2.718281828;
        CHECK((double)over <= share * KEYS);
    }
    sketch_destroy(&k, s);
}

static void saturation_and_windows(void)
{
    static const struct shape plain = { .key_bytes = 8, .capacity = 64, .rows = 3 };
    static const struct shape second = { .key_bytes = 8, .capacity = 64, .rows = 3, .window = 1000 };
    struct mr_config config = { .sketch_seed = 1, .time = 50000 };
    struct mr_packet pkt = { .time = 50000 };
    struct sketch k;
    u64 key = 9, token;

    CHECK(sketch_create(&k, &plain, &config, NULL) == 0);
    token = sketch_token(&k, &plain, &key);
    CHECK(sketch_sketch_add(&k, &plain, &key, token, 0xfffffff0, &pkt) == 0xfffffff0);
    CHECK(sketch_sketch_add(&k, &plain, &key, token, 0x20, &pkt) == UINT32_MAX);
    CHECK(sketch_sketch_add(&k, &plain, &key, token, UINT64_MAX, &pkt) == UINT32_MAX);
    sketch_destroy(&k, &plain);

    CHECK(sketch_create(&k, &second, &config, NULL) == 0);
    token = sketch_token(&k, &second, &key);
    pkt.time = 50999;
    CHECK(sketch_sketch_add(&k, &second, &key, token, 5, &pkt) == 5);
    CHECK(sketch_count(&k, &second, pkt.time) == 3);
    CHECK(sketch_used(&k, &second, 0) == 1); /* of a row */
    pkt.time = 51000;
    CHECK(sketch_count(&k, &second, pkt.time) == 0);
    CHECK(sketch_sketch_count(&k, &second, &key, token, &pkt) == 0);
    CHECK(sketch_sketch_add(&k, &second, &key, token, 2, &pkt) == 2);
    CHECK(sketch_used(&k, &second, 0) == 1); /* what the window before has left does not count */
    pkt.time = 50999; /* back: counted in the newest window */
    CHECK(sketch_sketch_add(&k, &second, &key, token, 1, &pkt) == 3);
    pkt.time = 49000; /* and before the first packet */
    CHECK(sketch_sketch_add(&k, &second, &key, token, 1, &pkt) == 4);
    pkt.time = 51999;
    CHECK(sketch_sketch_count(&k, &second, &key, token, &pkt) == 4);
    pkt.time = 52000;
    CHECK(sketch_sketch_count(&k, &second, &key, token, &pkt) == 0);
    sketch_destroy(&k, &second);
}

/* Of n keys in m counters of a row, m (1 - e^(-n/m)) are not 0; the estimate's standard error is below 5 %. */
static void occupied(void)
{
    static const struct shape s = { .key_bytes = 8, .capacity = 16384, .rows = 2 };
    struct mr_config config = { .sketch_seed = 7 };
    struct mr_packet pkt = { 0 };
    struct sketch k;
    u64 key = 0;

    CHECK(sketch_create(&k, &s, &config, NULL) == 0);
    CHECK(sketch_used(&k, &s, 0) == 0);
    for (key = 0; key < 8192; key++)
        sketch_sketch_add(&k, &s, &key, sketch_token(&k, &s, &key), 1, &pkt);
    CHECK(sketch_used(&k, &s, 0) > 4400 && sketch_used(&k, &s, 0) < 8500);
    for (; key < 200000; key++)
        sketch_sketch_add(&k, &s, &key, sketch_token(&k, &s, &key), 1, &pkt);
    CHECK(sketch_used(&k, &s, 0) == s.capacity);
    sketch_destroy(&k, &s);
}

/* The same seed, the same sketch; hash_seed, which is secret, does not enter. */
static void seeded(void)
{
    static const struct shape s = { .key_bytes = 8, .capacity = 16, .rows = 2 };
    struct mr_config first = { .sketch_seed = 3, .hash_seed = 1 }, other = { .sketch_seed = 3, .hash_seed = 2 };
    struct mr_packet pkt = { 0 };
    struct sketch a, b;

    CHECK(sketch_create(&a, &s, &first, NULL) == 0);
    CHECK(sketch_create(&b, &s, &other, NULL) == 0);
    for (u64 key = 0; key < 200; key++)
        CHECK(sketch_sketch_add(&a, &s, &key, sketch_token(&a, &s, &key), key, &pkt) ==
              sketch_sketch_add(&b, &s, &key, sketch_token(&b, &s, &key), key, &pkt));
    CHECK(!memcmp(a.counter, b.counter, 2 * 16 * 4));
    sketch_destroy(&a, &s);
    sketch_destroy(&b, &s);
}

static void refused_declarations(void)
{
    struct shape s = { .key_bytes = 8, .capacity = 16, .rows = 9 };
    struct sketch k;

    CHECK(sketch_create(&k, &s, &check_config, NULL) == -EINVAL);
    s.rows = 0;
    CHECK(sketch_create(&k, &s, &check_config, NULL) == -EINVAL);
    s.rows = 8;
    s.capacity = 17;
    CHECK(sketch_bytes(&s) == 4096 && sketch_columns(&s) == 32);
}

int main(void)
{
    for (u32 rows = 1; rows <= 8; rows++) {
        bounds(rows, 512, 0);
        bounds(rows, 1000, 30000);
    }
    saturation_and_windows();
    occupied();
    seeded();
    refused_declarations();
    return check_report();
}
