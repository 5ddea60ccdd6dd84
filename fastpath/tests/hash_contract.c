/* hash where its contract has edges: expiry to the nanosecond, full tables, all keys in one chain, the
 * secret, the ends of time. */
#include "hash_structure.h"

static u8 *put(struct hash *h, const struct shape *s, u64 key, u64 value, u64 now)
{
    struct mr_packet pkt = { .time = now };

    return hash_map_put(h, s, &key, hash_token(h, s, &key), (const u8 *)&value, &pkt);
}

static u8 *get(struct hash *h, const struct shape *s, u64 key, u64 now)
{
    struct mr_packet pkt = { .time = now };

    return hash_map_get(h, s, &key, hash_token(h, s, &key), &pkt);
}

static u8 *refresh(struct hash *h, const struct shape *s, u64 key, u64 now)
{
    struct mr_packet pkt = { .time = now };

    return hash_map_refresh(h, s, &key, hash_token(h, s, &key), &pkt);
}

static void boundary(void)
{
    static const struct shape s = { .key_bytes = 8, .value_bytes = 8, .capacity = 2, .expire_after = 100 };
    struct hash h;
    u64 cursor = 0, key, value;

    CHECK(hash_create(&h, &s, &check_config, NULL) == 0);
    CHECK(put(&h, &s, 1, 10, 1000));
    CHECK(get(&h, &s, 1, 1099));
    CHECK(!get(&h, &s, 1, 1100));
    CHECK(!refresh(&h, &s, 1, 1100));
    CHECK(hash_count(&h, &s, 1099) == 1);
    CHECK(hash_count(&h, &s, 1100) == 0);
    CHECK(hash_next(&h, &s, &cursor, (u8 *)&key, (u8 *)&value, 1100) == -ENOENT);
    CHECK(refresh(&h, &s, 1, 1099));
    CHECK(get(&h, &s, 1, 1198));
    CHECK(!get(&h, &s, 1, 1199));

    /* Full; the place of an entry that has just expired is free, one nanosecond earlier it is not. */
    CHECK(put(&h, &s, 2, 20, 1150));
    CHECK(hash_full(&h, &s, 0) == 0);
    CHECK(!put(&h, &s, 3, 30, 1198));
    CHECK(hash_full(&h, &s, 0) == 1);
    CHECK(put(&h, &s, 3, 30, 1199));
    CHECK(hash_full(&h, &s, 0) == 1);
    CHECK(!get(&h, &s, 1, 1199));
    CHECK(get(&h, &s, 2, 1199) && get(&h, &s, 3, 1199));

    /* Time goes back: entries from the future are of age 0 and keep their stamps. */
    CHECK(get(&h, &s, 3, 0));
    CHECK(refresh(&h, &s, 3, 0));
    CHECK(get(&h, &s, 3, 1298) && !get(&h, &s, 3, 1299));
    hash_destroy(&h, &s);
}

/* A refused put must not look through the table: all entries expire at once, and all of them are
 * refreshed just before; a million refusals are then as cheap as a million lookups. Counted in looks at
 * the queue, not in time. */
static void refusals_are_cheap(void)
{
    static const struct shape s = { .key_bytes = 8, .value_bytes = 8, .capacity = 4096, .expire_after = 1000 };
    struct hash h;
    u64 before;

    CHECK(hash_create(&h, &s, &check_config, NULL) == 0);
    for (u64 i = 0; i < 4096; i++)
        CHECK(put(&h, &s, i, 0, 0));
    for (u64 i = 0; i < 4096; i++)
        CHECK(refresh(&h, &s, i, 999));
    CHECK(!put(&h, &s, 9999, 0, 1000));
    for (u64 i = 0; i < 4096; i++)
        CHECK(h.expiry.item[i].due == 1999);
    before = h.expiry.item[0].due;
    for (u64 i = 0; i < 1000; i++)
        CHECK(!put(&h, &s, 10000 + i, 0, 1998));
    CHECK(h.expiry.item[0].due == before);
    CHECK(put(&h, &s, 9999, 0, 1999));
    hash_destroy(&h, &s);
}

/* Stamps from anywhere, in any order: the table stays whole and within its capacity. */
static void wild_times(void)
{
    static const struct shape s = { .key_bytes = 8, .value_bytes = 8, .capacity = 50, .expire_after = 1000 };
    struct hash h;

    CHECK(hash_create(&h, &s, &check_config, NULL) == 0);
    for (u64 i = 0; i < 20000; i++) {
        u64 now = mr_random(9, i), key = draw(80);

        now = draw(3) ? now >> draw(64) : ~(now >> draw(64));
        hash_age(&h, &s, draw(2) ? now : 0);
        if (draw(2))
            put(&h, &s, key, i, now);
        else
            refresh(&h, &s, key, now);
        if (draw(10) == 0)
            hash_remove(&h, &s, (u8 *)&key, now);
        CHECK(hash_count(&h, &s, now) <= 50);
        if (i % 100 == 0)
            check_structure(&h, &s);
    }
    hash_destroy(&h, &s);
}

/* Hostile stamps, at the end of 64 bits: nothing wraps, nothing hangs. */
static void end_of_time(void)
{
    static const struct shape s = { .key_bytes = 8, .value_bytes = 8, .capacity = 2, .expire_after = 100 };
    struct hash h;

    CHECK(hash_create(&h, &s, &check_config, NULL) == 0);
    CHECK(put(&h, &s, 1, 0, UINT64_MAX - 50) && put(&h, &s, 2, 0, UINT64_MAX));
    CHECK(get(&h, &s, 1, UINT64_MAX) && get(&h, &s, 2, UINT64_MAX));
    CHECK(!put(&h, &s, 3, 0, UINT64_MAX));
    hash_age(&h, &s, UINT64_MAX);
    CHECK(!put(&h, &s, 3, 0, 0));
    CHECK(get(&h, &s, 1, 0) && hash_count(&h, &s, 5) == 2);
    hash_destroy(&h, &s);
    CHECK(hash_create(&h, &s, &check_config, NULL) == 0);
    CHECK(put(&h, &s, 1, 0, 0) && put(&h, &s, 2, 0, UINT64_MAX - 101));
    CHECK(put(&h, &s, 3, 0, UINT64_MAX) && put(&h, &s, 4, 0, UINT64_MAX) && !put(&h, &s, 5, 0, UINT64_MAX));
    hash_destroy(&h, &s);
}

/* Ageing does not show: the same operations with and without it give the same. */
static void ageing_is_unobservable(void)
{
    static const struct shape s = { .key_bytes = 8, .value_bytes = 8, .capacity = 64, .expire_after = 100 };
    struct hash a, b;
    u64 now = 0;

    CHECK(hash_create(&a, &s, &check_config, NULL) == 0);
    CHECK(hash_create(&b, &s, &check_config, NULL) == 0);
    for (u64 i = 0; i < 20000; i++) {
        u64 key = draw(100);

        now += draw(4);
        hash_age(&a, &s, now);
        switch (draw(3)) {
        case 0:
            CHECK(!put(&a, &s, key, i, now) == !put(&b, &s, key, i, now));
            break;
        case 1:
            CHECK(!get(&a, &s, key, now) == !get(&b, &s, key, now));
            break;
        case 2:
            CHECK(!refresh(&a, &s, key, now) == !refresh(&b, &s, key, now));
            break;
        }
        CHECK(hash_count(&a, &s, now) == hash_count(&b, &s, now));
    }
    hash_destroy(&a, &s);
    hash_destroy(&b, &s);
}

/* Every key in one chain, as if the secret were known: capacity still holds, only speed suffers. */
static void one_chain(void)
{
    static const struct shape s = { .key_bytes = 8, .value_bytes = 8, .capacity = 1000 };
    struct hash h;
    struct mr_packet pkt = { 0 };

    CHECK(hash_create(&h, &s, &check_config, NULL) == 0);
    for (u64 round = 0; round < 3; round++) {
        for (u64 key = 0; key < 1000; key++)
            CHECK(hash_map_put(&h, &s, &key, 5, (const u8 *)&key, &pkt));
        for (u64 key = 1000; key < 1010; key++)
            CHECK(!hash_map_put(&h, &s, &key, 5, (const u8 *)&key, &pkt));
        check_structure(&h, &s);
        for (u64 i = 0; i < 1000; i++) {
            u64 key = i * 7 % 1000;
            u8 *value = hash_map_get(&h, &s, &key, 5, &pkt);
            u32 index;

            CHECK(value && mr_load64(value) == key);
            if (!table_find(&h.table, &s, 0, &key, 5, &index)) {
                CHECK(0);
                break;
            }
            table_release(&h.table, &s, 5, index);
        }
        CHECK(hash_count(&h, &s, 0) == 0);
        check_structure(&h, &s);
    }
    hash_destroy(&h, &s);
}

/* The hash spreads the key sets that networks make: bucket loads as of random keys. */
static void spread(void)
{
    enum { KEYS = 1 << 16, BUCKETS = 1 << 14 };
    static u32 load[BUCKETS];
    struct mr_secret secret = mr_secret(99);

    for (u32 pattern = 0; pattern < 8; pattern++) {
        double square = 0;

        memset(load, 0, sizeof(load));
        for (u64 i = 0; i < KEYS; i++) {
            u64 w[2] = { 0, 0 };

            switch (pattern) {
            case 0: w[0] = i; break;
            case 1: w[0] = i << 48; break;
            case 2: w[0] = (u64)__builtin_bswap32((u32)i); break;
            case 3: w[0] = i * 0x100000001ull; break;
            case 4: w[1] = i; break;
            case 5: w[0] = i & 255, w[1] = i >> 8 << 40; break;
            case 6: w[0] = i << 16, w[1] = i << 16; break;
            case 7: w[0] = ~i, w[1] = i; break;
            }
            load[mr_hash(w, pattern < 4 ? 1 : 2, &secret) & (BUCKETS - 1)]++;
        }
        for (u32 i = 0; i < BUCKETS; i++)
            square += ((double)load[i] - 4) * ((double)load[i] - 4) / 4;
        /* chi squared with 16383 degrees: standard deviation 181; six of them on either side */
        CHECK(square > 16383 - 6 * 181 && square < 16383 + 6 * 181);
    }
}

/* The order of `next` and every place are the same under another secret. */
static void secret_is_unobservable(void)
{
    static const struct shape s = { .key_bytes = 8, .value_bytes = 8, .capacity = 500, .expire_after = 300 };
    struct mr_config one = { .hash_seed = 1 }, two = { .hash_seed = 2 };
    struct hash a, b;
    u64 now = 0;

    CHECK(hash_create(&a, &s, &one, NULL) == 0 && hash_create(&b, &s, &two, NULL) == 0);
    for (u64 i = 0; i < 20000; i++) {
        u64 key = draw(700), at = 0, bt = 0, ak, bk, av, bv;

        now += draw(2);
        if (draw(3)) {
            CHECK(!put(&a, &s, key, i, now) == !put(&b, &s, key, i, now));
        } else {
            CHECK(hash_remove(&a, &s, (u8 *)&key, now) == hash_remove(&b, &s, (u8 *)&key, now));
        }
        if (i % 500)
            continue;
        hash_age(&a, &s, now);
        hash_age(&b, &s, now);
        for (;;) {
            int more = hash_next(&a, &s, &at, (u8 *)&ak, (u8 *)&av, now);

            CHECK(hash_next(&b, &s, &bt, (u8 *)&bk, (u8 *)&bv, now) == more);
            if (more)
                break;
            CHECK(ak == bk && av == bv && at == bt);
        }
    }
    hash_destroy(&a, &s);
    hash_destroy(&b, &s);
}

static void signatures(void)
{
    static const struct shape small = { .capacity = 1 }, some = { .capacity = 1000 }, most = { .capacity = MR_CAPACITY_MAX };
    struct table_bucket bucket = { 0 };

    for (u32 i = 0; i < 10000; i++) {
        u64 token = (draw(4) << 41) + draw(1 << 20);
        u32 signature = table_signature(&some, token);

        CHECK(signature % 1024 == 0 && signature / 1024 % 2 == 1);
        for (u32 w = 0; w < TABLE_WAYS; w++)
            bucket.way[w] = (u32)((draw(8) << 10) + draw(1000));
        CHECK(table_match(&bucket, &some, signature) == table_match_portable(&bucket, &some, signature));
    }
    bucket.way[2] = bucket.way[14] = bucket.next = 0xfffffc00;
    CHECK(table_match(&bucket, &some, 0xfffffc00) == (1u << 2 | 1u << 14));
    CHECK(table_signature(&small, 0) == 1 && table_signature(&small, UINT64_MAX >> 1) == UINT32_MAX);
    CHECK(table_signature(&most, 0) == 1u << 31);
}

static void refused_declarations(void)
{
    struct shape s = { .key_bytes = 0, .value_bytes = 8, .capacity = 1 };
    struct hash h;

    CHECK(hash_create(&h, &s, &check_config, NULL) == -EINVAL);
    hash_destroy(&h, &s);
    s.key_bytes = 513;
    CHECK(hash_create(&h, &s, &check_config, NULL) == -EINVAL);
    s.key_bytes = 512;
    s.capacity = 0;
    CHECK(hash_create(&h, &s, &check_config, NULL) == -EINVAL);
    s.capacity = 1ull << 31;
    CHECK(hash_create(&h, &s, &check_config, NULL) == -E2BIG);
}

int main(void)
{
    boundary();
    refusals_are_cheap();
    end_of_time();
    wild_times();
    ageing_is_unobservable();
    one_chain();
    spread();
    secret_is_unobservable();
    signatures();
    refused_declarations();
    return check_report();
}
