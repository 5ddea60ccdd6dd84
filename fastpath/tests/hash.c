/* hash against a linear array: every operation's result, for keys of 1 to 64 and of 512 bytes, with and
 * without expiry, with time that stands still and goes back. */
#include "hash_structure.h"

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
    /* Expired entries keep their places until they are reclaimed. */
    CHECK(hash_used(h, s, now) >= n && hash_used(h, s, now) <= s->capacity);
    /* Place by place the same, and nothing beyond the last. */
    for (u64 place = 0; place < s->capacity + 3; place++) {
        struct mr_packet pkt = { .time = now };
        u8 *p = hash_map_slot(h, s, place, key, &pkt);
        struct model_entry *e = p ? model_find(m, s, key, now) : NULL;

        CHECK(!p || (e && !memcmp(e->value, p, s->value_bytes)));
        n -= p != NULL;
    }
    CHECK(n == 0);
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
    u64 *earlier = calloc(keys, sizeof(u64)); /* tokens, found when the table was another */
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
        token = hash_prefetch_entry(&h, s, token);
        if (earlier[which] && draw(2))
            token = earlier[which];
        else
            earlier[which] = token;
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
    free(earlier);
}

/* Places that a list has told. */
struct told {
    u8 at[400];
    u64 calls;
};

static int tell(void *context, const struct mr_saved *piece)
{
    struct told *told = context;

    CHECK(piece->what == MR_SAVED_ENTRY && piece->place < sizeof(told->at));
    told->at[piece->place] = 1;
    told->calls++;
    return 0;
}

/* Entries are listed a few places at a time, while others come and go: what is there behind the last place has been told, or the list
 * has said that it forgot some, and begins again. */
static void listed(struct shape shape, u32 most)
{
    const struct shape *s = &shape;
    struct mr_config config = { .hash_seed = 5, .workers = 1 };
    struct mr_packet pkt = { .time = 1000 };
    u32 again = 0, puts_seen = 0;
    struct hash h;

    CHECK(hash_create(&h, s, &config, NULL) == 0);
    for (u32 round = 0; round < 200; round++) {
        struct told told = { .calls = 0 };
        u64 at = 0;
        int lost = 0, many = round % 10 == 0;

        CHECK(hash_list(&h, s, 0, 0, tell, &told) >= 0);
        memset(&told, 0, sizeof(told));
        do {
            u32 operations = (u32)draw(many ? 8 * TABLE_NEWS : most);
            u64 to = at + 1 + draw(60);

            for (u32 i = 0; i < operations; i++) {
                u64 key = draw(2 * s->capacity), value = key;
                u64 token = hash_token(&h, s, &key);

                pkt.time += draw(2);
                if (draw(2))
                    puts_seen += hash_map_put(&h, s, &key, token, (u8 *)&value, &pkt) != NULL;
                else
                    hash_map_delete(&h, s, &key, token, &pkt);
            }
            lost = hash_list(&h, s, at, to, tell, &told);
            CHECK(lost == 0 || lost == 1);
            at = lost ? 0 : to;
            many = 0;
            again += (u32)lost;
        } while (at < s->capacity);
        for (u32 i = 0; i < s->capacity; i++)
            CHECK(told.at[i] || table_is_free(&h.table, i));
    }
    CHECK(again > 0 && puts_seen > 1000);
    hash_destroy(&h, s);
}

int main(void)
{
    listed((struct shape){ .key_bytes = 8, .value_bytes = 8, .capacity = 400 }, 30);
    listed((struct shape){ .key_bytes = 8, .value_bytes = 8, .capacity = 300, .expire_after = 200 }, 30);
    for (u32 bytes = 1; bytes <= 64; bytes++)
        random_operations((struct shape){ .key_bytes = bytes, .value_bytes = bytes * 5 % 67, .capacity = 1 + bytes * 3,
                                          .expire_after = bytes % 2 ? 97 : 0 },
                          bytes * 5, 3000, bytes % 4 == 1);
    random_operations((struct shape){ .key_bytes = 512, .value_bytes = 256, .capacity = 100 }, 150, 10000, 0);
    random_operations((struct shape){ .key_bytes = 13, .value_bytes = 0, .capacity = 1000, .expire_after = 3000 },
                      1500, 40000, 1);
    return check_report();
}
