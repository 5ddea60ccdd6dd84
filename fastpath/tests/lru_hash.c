/* lru_hash against a linear array that runs CLOCK with one flag an entry, one step at a time. */
#include "../state/lru_hash.h"
#include "check.h"

enum { MOST = 300 };

/* Entries are places; free places are taken last freed first, as a pile. */
struct model {
    u64 key[MOST], value[MOST];
    u8 used[MOST], lately[MOST];
    u32 pile[MOST], piled, hand, capacity;
};

static void model_create(struct model *m, u32 capacity)
{
    memset(m, 0, sizeof(*m));
    m->capacity = capacity;
    while (m->piled < capacity) {
        m->pile[m->piled] = capacity - 1 - m->piled;
        m->piled++;
    }
}

static u32 model_find(const struct model *m, u64 key)
{
    for (u32 i = 0; i < m->capacity; i++)
        if (m->used[i] && m->key[i] == key)
            return i;
    return MR_NONE;
}

static void model_insert(struct model *m, u64 key, u64 value)
{
    u32 at;

    if (!m->piled) {
        while (m->lately[m->hand]) {
            m->lately[m->hand] = 0;
            m->hand = (m->hand + 1) % m->capacity;
        }
        m->used[m->hand] = 0;
        m->pile[m->piled++] = m->hand;
        m->hand = (m->hand + 1) % m->capacity;
    }
    at = m->pile[--m->piled];
    m->key[at] = key;
    m->value[at] = value;
    m->used[at] = 1;
    m->lately[at] = 0;
}

static void compare(struct lru_hash *h, const struct shape *s, const struct model *m)
{
    u64 cursor = 0, key, value, n = 0;

    while (lru_hash_next(h, s, &cursor, (u8 *)&key, (u8 *)&value, 0) == 0) {
        u32 at = model_find(m, key);

        CHECK(at != MR_NONE && m->value[at] == value);
        n++;
    }
    CHECK(n == m->capacity - m->piled);
    CHECK(lru_hash_count(h, s, 0) == n);
    CHECK(lru_hash_used(h, s, 0) == n);
    for (u64 place = 0; place < s->capacity + 3; place++) {
        struct mr_packet pkt = { 0 };
        u8 *p = lru_hash_map_slot(h, s, place, (u8 *)&key, &pkt);
        u32 at = p ? model_find(m, key) : MR_NONE;

        CHECK(!p || (at != MR_NONE && !memcmp(p, &m->value[at], sizeof(value))));
        n -= p != NULL;
    }
    CHECK(n == 0);
}

static void random_operations(u32 capacity, u64 keys, u64 steps, u64 seed)
{
    struct shape shape = { .key_bytes = 8, .value_bytes = 8, .capacity = capacity };
    struct mr_config config = { .hash_seed = seed };
    const struct shape *s = &shape;
    struct mr_packet pkt = { 0 };
    struct lru_hash h;
    static struct model m;
    u64 *earlier = calloc(keys, sizeof(u64)); /* tokens, found when the table was another */

    model_create(&m, capacity);
    CHECK(lru_hash_create(&h, s, &config, NULL) == 0);
    for (u64 step = 0; step < steps; step++) {
        u64 key = draw(keys), value = step, got = 0;
        u64 token = lru_hash_token(&h, s, &key);
        u32 at = model_find(&m, key);
        u64 flags = draw(8) ? 0 : draw(4);
        u8 *p;

        lru_hash_prefetch(&h, s, token);
        token = lru_hash_prefetch_entry(&h, s, token);
        if (earlier[key] && draw(2))
            token = earlier[key];
        else
            earlier[key] = token;
        switch (draw(6)) {
        case 0:
        case 1:
            p = lru_hash_map_lookup_elem(&h, s, &key, token, &pkt);
            CHECK(!p == (at == MR_NONE));
            if (p && at != MR_NONE) {
                CHECK(mr_load64(p) == m.value[at]);
                m.lately[at] = 1;
            }
            break;
        case 2:
        case 3: {
            u64 want = flags == 3                      ? mr_errno(EINVAL)
                       : at != MR_NONE && flags == 1   ? mr_errno(EEXIST)
                       : at == MR_NONE && flags == 2   ? mr_errno(ENOENT)
                                                       : 0;

            CHECK(lru_hash_map_update_elem(&h, s, &key, token, (u8 *)&value, flags, &pkt) == want);
            if (!want && at != MR_NONE) {
                m.value[at] = value;
                m.lately[at] = 1;
            } else if (!want) {
                model_insert(&m, key, value);
            }
            break;
        }
        case 4:
            if (draw(4))
                break;
            CHECK(lru_hash_map_delete_elem(&h, s, &key, token, &pkt) ==
                  (at == MR_NONE ? mr_errno(ENOENT) : 0));
            if (at != MR_NONE) {
                m.used[at] = m.lately[at] = 0;
                m.pile[m.piled++] = at;
            }
            break;
        case 5:
            CHECK(lru_hash_get(&h, s, (u8 *)&key, (u8 *)&got, 0) == (at == MR_NONE ? -ENOENT : 0));
            CHECK(at == MR_NONE || got == m.value[at]);
            break;
        }
        if (step % 256 == 0)
            compare(&h, s, &m);
    }
    compare(&h, s, &m);
    lru_hash_destroy(&h, s);
    free(earlier);
}

/* What was used since the last round survives one insertion fewer than there are unused entries. */
static void used_entries_survive(void)
{
    static const struct shape s = { .key_bytes = 4, .value_bytes = 4, .capacity = 100 };
    struct mr_packet pkt = { 0 };
    struct lru_hash h;
    u64 key, token;

    CHECK(lru_hash_create(&h, &s, &check_config, NULL) == 0);
    for (key = 0; key < 100; key++)
        CHECK(lru_hash_set(&h, &s, (u8 *)&key, (u8 *)&key, 0) == 0);
    for (key = 0; key < 100; key += 2) {
        token = lru_hash_token(&h, &s, &key);
        CHECK(lru_hash_map_lookup_elem(&h, &s, &key, token, &pkt) != NULL);
    }
    for (key = 1000; key < 1050; key++)
        CHECK(lru_hash_set(&h, &s, (u8 *)&key, (u8 *)&key, 0) == 0);
    for (key = 0; key < 100; key++) {
        token = lru_hash_token(&h, &s, &key);
        CHECK((lru_hash_map_lookup_elem(&h, &s, &key, token, &pkt) == NULL) == (key & 1));
    }
    CHECK(lru_hash_count(&h, &s, 0) == 100);
    key = 1000;
    CHECK(lru_hash_remove(&h, &s, (u8 *)&key, 0) == 0);
    CHECK(lru_hash_remove(&h, &s, (u8 *)&key, 0) == -ENOENT);
    lru_hash_destroy(&h, &s);
}

int main(void)
{
    static const u32 capacities[] = { 1, 2, 7, 63, 64, 65, 127, 128, 200, 300 };

    for (u32 i = 0; i < sizeof(capacities) / sizeof(*capacities); i++)
        for (u64 seed = 0; seed < 3; seed++)
            random_operations(capacities[i], capacities[i] * 3 / 2 + 2, 10000, seed);
    used_entries_survive();
    return check_report();
}
