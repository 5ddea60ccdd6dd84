/* hash against a linear array: every operation's result, expiry at the boundary, full tables, deletes,
 * time that stands still and goes back. */
#include "../state/hash.h"
#include "check.h"

struct model_entry {
    u8 key[512];
    u8 value[256];
    u64 stamp;
    int used;
};

struct model {
    struct model_entry *entry;
    u64 capacity;
};

static int alive(const struct shape *s, const struct model_entry *e, u64 now)
{
    u64 age = now > e->stamp ? now - e->stamp : 0;

    return e->used && !(s->expire_after && age >= s->expire_after);
}

static struct model_entry *model_find(struct model *m, const struct shape *s, const u8 *key, u64 now)
{
    for (u64 i = 0; i < m->capacity; i++)
        if (alive(s, &m->entry[i], now) && !memcmp(m->entry[i].key, key, s->key_bytes))
            return &m->entry[i];
    return NULL;
}

static struct model_entry *model_put(struct model *m, const struct shape *s, const u8 *key,
                                     const u8 *value, u64 now)
{
    struct model_entry *e = model_find(m, s, key, now);

    for (u64 i = 0; !e && i < m->capacity; i++)
        if (!alive(s, &m->entry[i], now))
            e = &m->entry[i];
    if (!e)
        return NULL;
    if (!alive(s, e, now) || now > e->stamp || memcmp(e->key, key, s->key_bytes))
        e->stamp = now;
    e->used = 1;
    memcpy(e->key, key, s->key_bytes);
    memcpy(e->value, value, s->value_bytes);
    return e;
}

static u64 model_count(struct model *m, const struct shape *s, u64 now)
{
    u64 n = 0;

    for (u64 i = 0; i < m->capacity; i++)
        n += alive(s, &m->entry[i], now);
    return n;
}

/* Every entry of the table is in the model, none twice, as many as the model has. */
static void compare_all(struct hash *h, const struct shape *s, struct model *m, u64 now)
{
    u64 cursor = 0, n = 0;
    u8 key[512], value[256];

    while (hash_next(h, s, &cursor, key, value, now) == 0) {
        struct model_entry *e = model_find(m, s, key, now);

        CHECK(e && !memcmp(e->value, value, s->value_bytes));
        n++;
        if (n > s->capacity)
            break;
    }
    CHECK(n == model_count(m, s, now));
    CHECK(hash_count(h, s, now) == n);
}

/* The table's own invariants: chains compact, every spare bucket accounted for, bounds no later than
 * the times they bound. */
static void check_structure(struct hash *h, const struct shape *s)
{
    struct table *t = &h->table;
    u64 entries = 0, overflow = 0, spare = 0;

    for (u32 i = 0; i <= t->mask; i++) {
        u32 at = i;

        do {
            struct table_bucket *b = &t->bucket[at];
            int vacant = 0;

            for (u32 w = 0; w < TABLE_WAYS; w++) {
                CHECK(!(vacant && b->signature[w]));
                vacant |= !b->signature[w];
                entries += b->signature[w] != 0;
            }
            CHECK(!(b->next && vacant));
            CHECK(at == i || b->signature[0]);
            overflow += at != i;
            at = b->next;
        } while (at);
    }
    for (u32 at = t->spare; at; at = t->bucket[at].next)
        spare++;
    CHECK(entries == t->used);
    CHECK(overflow + spare == s->capacity / 8 + 1);
    if (!s->expire_after)
        return;
    CHECK(h->expiry.count == t->used);
    for (u32 i = 0; i < h->expiry.count; i++) {
        struct expiry_item *item = &h->expiry.item[i];
        u8 *entry = table_entry(t, s, 8, item->index);

        CHECK(t->link[item->index] == i);
        CHECK(item->due <= expiry_due(*hash_stamp(entry), s->expire_after));
        CHECK(i == 0 || !expiry_before(item, &h->expiry.item[(i - 1) / 4]));
    }
}

/* `backwards`: stamps of neighbouring packets differ by up to JITTER either way. It is less than the
 * time to expiry, and time leaps over expiry: what has expired stays so, and results are exact. */
enum { JITTER = 40 };

static void random_operations(struct shape shape, u64 keys, u64 steps, int backwards)
{
    const struct shape *s = &shape;
    struct hash h;
    struct model m = { calloc(s->capacity, sizeof(struct model_entry)), s->capacity };
    struct mr_packet pkt = { .time = 1000000 };
    u64 word[MR_KEY_WORDS_MAX], base = pkt.time;
    u8 key[512], value[256];

    CHECK(hash_create(&h, s, &check_config, NULL) == 0);
    for (u64 step = 0; step < steps; step++) {
        u64 which = draw(keys), token;
        struct model_entry *e;
        u8 *p;

        memset(key, 0, sizeof(key));
        memcpy(key + (s->key_bytes > 3 ? s->key_bytes - 3 : 0), &which,
               s->key_bytes < 3 ? s->key_bytes : 3);
        for (u32 i = 0; i < s->value_bytes; i++)
            value[i] = (u8)draw(256);
        mr_pad_key(word, key, s->key_bytes);
        token = hash_token(&h, s, word);
        hash_prefetch(&h, s, token);
        hash_prefetch_entry(&h, s, token);
        if (backwards) {
            if (draw(200) == 0)
                base += s->expire_after + 2 * JITTER;
            pkt.time = base + draw(JITTER);
        } else {
            pkt.time += draw(200) ? draw(3) : draw(50);
        }
        if (draw(8) == 0)
            hash_age(&h, s, pkt.time);
        e = model_find(&m, s, key, pkt.time);
        switch (draw(9)) {
        case 0:
        case 1:
            p = hash_map_get(&h, s, word, token, &pkt);
            CHECK(!p == !e);
            CHECK(!p || !e || !memcmp(p, e->value, s->value_bytes));
            break;
        case 2:
            p = hash_map_refresh(&h, s, word, token, &pkt);
            CHECK(!p == !e);
            CHECK(!p || !e || !memcmp(p, e->value, s->value_bytes));
            if (e && pkt.time > e->stamp)
                e->stamp = pkt.time;
            break;
        case 3:
        case 4:
            p = hash_map_put(&h, s, word, token, value, &pkt);
            CHECK(!p == !model_put(&m, s, key, value, pkt.time));
            CHECK(!p || !memcmp(p, value, s->value_bytes));
            break;
        case 5:
            CHECK(hash_map_delete(&h, s, word, token, &pkt) == (e != NULL));
            if (e)
                e->used = 0;
            break;
        case 6: {
            u64 flags = draw(4);
            u64 want = flags == 3           ? mr_errno(EINVAL)
                       : e && flags == 1    ? mr_errno(EEXIST)
                       : !e && flags == 2   ? mr_errno(ENOENT)
                       : !e && model_count(&m, s, pkt.time) == s->capacity ? mr_errno(E2BIG)
                                                                            : 0;

            if (s->expire_after)
                break; /* BPF maps do not expire */
            CHECK(hash_map_update_elem(&h, s, word, token, value, flags, &pkt) == want);
            if (want == 0)
                model_put(&m, s, key, value, pkt.time);
            break;
        }
        case 7: {
            u8 got[256];
            int found = hash_get(&h, s, key, got, pkt.time);

            CHECK(found == (e ? 0 : -ENOENT));
            CHECK(found || !e || !memcmp(got, e->value, s->value_bytes));
            break;
        }
        case 8:
            if (draw(2)) {
                CHECK(hash_remove(&h, s, key, pkt.time) == (e ? 0 : -ENOENT));
                if (e)
                    e->used = 0;
            } else {
                int stored = hash_set(&h, s, key, value, pkt.time);

                CHECK(stored == (model_put(&m, s, key, value, pkt.time) ? 0 : -E2BIG));
            }
            break;
        }
        if (step % 512 == 0) {
            compare_all(&h, s, &m, pkt.time);
            check_structure(&h, s);
        }
    }
    compare_all(&h, s, &m, pkt.time);
    check_structure(&h, s);
    hash_destroy(&h, s);
    free(m.entry);
}

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
    CHECK(!put(&h, &s, 3, 30, 1198));
    CHECK(put(&h, &s, 3, 30, 1199));
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
            table_release(&h.table, 5, index);
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
    struct table_bucket bucket = { 0 };

    for (u32 i = 0; i < 10000; i++) {
        u16 signature = (u16)(draw(4) * 2 + 1);

        for (u32 w = 0; w < TABLE_WAYS; w++)
            bucket.signature[w] = (u16)draw(8);
        CHECK(table_match(&bucket, signature) == table_match_portable(&bucket, signature));
    }
    bucket.signature[2] = bucket.signature[7] = 0xffff;
    CHECK(table_match(&bucket, 0xffff) == (1u << 4 | 1u << 14));
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
    for (u32 bytes = 1; bytes <= 64; bytes++)
        random_operations((struct shape){ .key_bytes = bytes, .value_bytes = bytes * 5 % 67, .capacity = 1 + bytes * 3,
                                          .expire_after = bytes % 2 ? 97 : 0 },
                          bytes * 5, 3000, bytes % 4 == 1);
    random_operations((struct shape){ .key_bytes = 512, .value_bytes = 256, .capacity = 100 }, 150, 10000, 0);
    random_operations((struct shape){ .key_bytes = 13, .value_bytes = 0, .capacity = 1000, .expire_after = 3000 },
                      1500, 40000, 1);
    boundary();
    refusals_are_cheap();
    ageing_is_unobservable();
    one_chain();
    spread();
    secret_is_unobservable();
    signatures();
    refused_declarations();
    return check_report();
}
