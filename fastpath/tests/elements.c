/* array, vector and global: bounds, errors, what is there at the start. */
#include "../state/array.h"
#include "../state/global.h"
#include "../state/vector.h"
#include "check.h"

static void arrays(u64 capacity, u32 value_bytes)
{
    struct shape shape = { .key_bytes = 4, .value_bytes = value_bytes, .capacity = capacity };
    const struct shape *s = &shape;
    struct mr_packet pkt = { 0 };
    u8 *model = calloc(capacity, value_bytes);
    u8 value[512], key[4];
    struct array a;
    u64 cursor = 0, n = 0;

    CHECK(array_create(&a, s, &check_config, NULL) == 0);
    for (u64 step = 0; step < 20000; step++) {
        /* The upper half of a key's word is not the key. */
        u64 index = draw(capacity + capacity / 2 + 3);
        u64 word = (u32)index, token = array_token(&a, s, &word);
        u64 flags = draw(4) ? draw(2) * 2 : draw(6);
        u8 *p = array_map_lookup_elem(&a, s, &word, token, &pkt);
        u64 want = flags > 2 ? mr_errno(EINVAL) : index >= capacity ? mr_errno(E2BIG) : flags == 1 ? mr_errno(EEXIST) : 0;

        array_prefetch(&a, s, token);
        token = array_prefetch_entry(&a, s, token);
        CHECK(!p == (index >= capacity));
        if (p)
            CHECK(!memcmp(p, model + index * value_bytes, value_bytes));
        for (u32 i = 0; i < value_bytes; i++)
            value[i] = (u8)draw(256);
        CHECK(array_map_update_elem(&a, s, &word, token, value, flags, &pkt) == want);
        if (!want)
            memcpy(model + index * value_bytes, value, value_bytes);
        CHECK(array_map_delete_elem(&a, s, &word, token, &pkt) == mr_errno(EINVAL));
    }
    while (array_next(&a, s, &cursor, key, value, 0) == 0) {
        CHECK(mr_load32(key) == n);
        CHECK(!memcmp(value, model + n * value_bytes, value_bytes));
        n++;
    }
    CHECK(n == capacity && array_count(&a, s, 0) == capacity);
    for (u64 place = 0; place < capacity + 3; place++) {
        u8 *p = array_map_slot(&a, s, place, key, &pkt);

        CHECK(!p == (place >= capacity));
        CHECK(!p || (mr_load32(key) == place && !memcmp(p, model + place * value_bytes, value_bytes)));
    }
    mr_store32(key, (u32)capacity);
    CHECK(array_get(&a, s, key, value, 0) == -ENOENT && array_set(&a, s, key, value, 0) == -E2BIG);
    mr_store32(key, (u32)capacity - 1);
    CHECK(array_set(&a, s, key, value, 0) == 0 && array_remove(&a, s, key, 0) == -EINVAL);
    array_destroy(&a, s);
    free(model);
}

static void vectors(void)
{
    static const struct shape s = { .key_bytes = 4, .value_bytes = 12, .capacity = 10 };
    struct mr_packet pkt = { 0 };
    struct vector v;
    u8 *before = NULL, key[4], value[12];
    u64 cursor = 9;

    CHECK(vector_create(&v, &s, &check_config, NULL) == 0);
    for (u64 i = 0; i < 10; i++) {
        u8 *p = vector_vector_at(&v, &s, i, &pkt);

        CHECK(p && (!before || p == before + 16 + MR_GAP) && mr_load32(p) == 0);
        memset(p, 0xff, 12);
        before = p;
    }
    CHECK(!vector_vector_at(&v, &s, 10, &pkt));
    CHECK(!vector_vector_at(&v, &s, 1ull << 32, &pkt));
    CHECK(!vector_vector_at(&v, &s, UINT64_MAX, &pkt));
    vector_prefetch(&v, &s, UINT64_MAX);
    CHECK(vector_next(&v, &s, &cursor, key, value, 0) == 0 && mr_load32(key) == 9 && value[11] == 0xff);
    CHECK(vector_next(&v, &s, &cursor, key, value, 0) == -ENOENT && vector_count(&v, &s, 0) == 10);
    value[0] = 1;
    CHECK(vector_set(&v, &s, key, value, 0) == 0 && *vector_vector_at(&v, &s, 9, &pkt) == 1);
    mr_store32(key, 10);
    CHECK(vector_set(&v, &s, key, value, 0) == -E2BIG && vector_get(&v, &s, key, value, 0) == -ENOENT);
    vector_destroy(&v, &s);
}

static void globals(void)
{
    static const struct shape s = { .value_bytes = 5 };
    static const struct shape none = { .value_bytes = 0 };
    struct global g;
    u8 value[5];
    u64 cursor = 0;

    CHECK(global_create(&g, &s, &check_config, (const u8 *)"abcde") == 0);
    CHECK(!memcmp(global_base(&g, &s), "abcde", 5));
    CHECK(global_set(&g, &s, NULL, (const u8 *)"fghij", 0) == 0);
    CHECK(global_next(&g, &s, &cursor, NULL, value, 0) == 0 && !memcmp(value, "fghij", 5));
    CHECK(global_next(&g, &s, &cursor, NULL, value, 0) == -ENOENT);
    global_destroy(&g, &s);
    CHECK(global_create(&g, &s, &check_config, NULL) == 0 && global_base(&g, &s)[4] == 0);
    global_destroy(&g, &s);
    CHECK(global_create(&g, &none, &check_config, NULL) == 0);
    CHECK(global_bytes(&none) == 0 && global_count(&g, &none, 0) == 0);
    CHECK(global_get(&g, &none, NULL, value, 0) == -ENOENT);
    global_destroy(&g, &none);
}

/* Large objects get whole huge pages, aligned, and exactly the bytes they say. */
static void memory(void)
{
    static const struct shape s = { .key_bytes = 4, .value_bytes = 1024, .capacity = 3000 };
    struct array a;

    CHECK(array_bytes(&s) == 4ull << 20);
    CHECK(array_create(&a, &s, &check_config, NULL) == 0);
    CHECK(MR_GUARD || ((uintptr_t)a.elements.data & (MR_HUGE_PAGE - 1)) == 0);
    a.elements.data[3000 * 1024 - 1] = 1;
    array_destroy(&a, &s);
    CHECK(mr_map_memory(0) == NULL);
    CHECK(mr_map_memory(1ull << 60) == NULL);
    CHECK(mr_mapped_bytes(1) == 4096 && mr_mapped_bytes(4096) == 4096 && mr_mapped_bytes(4097) == 8192);
    CHECK(mr_mapped_bytes((2 << 20) - 1) == 2 << 20 && mr_mapped_bytes((2 << 20) + 1) == 4 << 20);
}

static void refused_declarations(void)
{
    static const struct shape empty = { .key_bytes = 4, .value_bytes = 4, .capacity = 0 };
    static const struct shape hollow = { .key_bytes = 4, .value_bytes = 0, .capacity = 4 };
    static const struct shape giant = { .key_bytes = 4, .value_bytes = 4, .capacity = 1ull << 40 };
    struct array a;

    CHECK(array_create(&a, &empty, &check_config, NULL) == -EINVAL);
    CHECK(array_create(&a, &hollow, &check_config, NULL) == -EINVAL);
    CHECK(array_create(&a, &giant, &check_config, NULL) == -E2BIG);
    array_destroy(&a, &giant);
}

int main(void)
{
    arrays(1, 1);
    arrays(10, 8);
    arrays(100, 13);
    arrays(1000, 300);
    vectors();
    globals();
    memory();
    refused_declarations();
    return check_report();
}
