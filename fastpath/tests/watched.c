/* What AddressSanitizer is told of each kind: exactly the bytes of a value may be touched, and nothing of an
 * entry that was never taken or a record that is not held. Under no sanitizer there is nothing to check. */
#include "../state/allocator.h"
#include "../state/array.h"
#include "../state/array_of_maps.h"
#include "../state/global.h"
#include "../state/hash.h"
#include "../state/lpm.h"
#include "../state/lru_hash.h"
#include "../state/queue.h"
#include "../state/ringbuf.h"
#include "../state/vector.h"
#include "../helpers/ringbuf_discard.h"
#include "../helpers/ringbuf_submit.h"
#include "check.h"

#if __has_feature(address_sanitizer)

int __asan_address_is_poisoned(void const volatile *p);

/* The bytes before (`front` of them) and behind a value are forbidden, and its own are not. */
static void exactly(const u8 *value, u32 bytes, u32 front)
{
    CHECK(value != NULL);
    for (u32 i = 0; value && i < bytes; i++)
        CHECK(!__asan_address_is_poisoned(value + i));
    for (u32 i = 1; value && i <= front; i++)
        CHECK(__asan_address_is_poisoned(value - i));
    for (u32 i = 0; value && i < 8; i++)
        CHECK(__asan_address_is_poisoned(value + bytes + i));
}

static void keyed(u32 key_bytes, u32 value_bytes)
{
    struct shape shape = { .key_bytes = key_bytes, .value_bytes = value_bytes, .capacity = 5 };
    struct shape expiring = shape;
    struct mr_packet pkt = { 0 };
    struct hash h, e;
    struct lru_hash l;
    u8 *value = calloc(1, value_bytes), *never, *p;
    u64 word[MR_KEY_WORDS_MAX] = { 0 };

    expiring.expire_after = 100;
    CHECK(!hash_create(&h, &shape, &check_config, NULL));
    CHECK(!hash_create(&e, &expiring, &check_config, NULL));
    CHECK(!lru_hash_create(&l, &shape, &check_config, NULL));
    never = table_value(&shape, table_entry(&h.table, &shape, 0, 4), 0);
    for (u32 i = 0; i < value_bytes; i++)
        CHECK(__asan_address_is_poisoned(never + i));
    for (u64 n = 0; n < 5; n++) {
        word[0] = n;
        CHECK(!hash_map_update_elem(&h, &shape, word, hash_token(&h, &shape, word), value, 0, &pkt));
        exactly(hash_map_lookup_elem(&h, &shape, word, hash_token(&h, &shape, word), &pkt), value_bytes, MR_GAP);
        exactly(hash_map_put(&e, &expiring, word, hash_token(&e, &expiring, word), value, &pkt), value_bytes, MR_GAP);
        CHECK(!lru_hash_map_update_elem(&l, &shape, word, lru_hash_token(&l, &shape, word), value, 0, &pkt));
        exactly(lru_hash_map_lookup_elem(&l, &shape, word, lru_hash_token(&l, &shape, word), &pkt), value_bytes,
                MR_GAP);
    }
    /* After a delete a program may still hold the pointer. */
    p = hash_map_lookup_elem(&h, &shape, word, hash_token(&h, &shape, word), &pkt);
    CHECK(!hash_map_delete_elem(&h, &shape, word, hash_token(&h, &shape, word), &pkt));
    exactly(p, value_bytes, MR_GAP);
    hash_destroy(&h, &shape);
    hash_destroy(&e, &expiring);
    lru_hash_destroy(&l, &shape);
    free(value);
}

static void rows(u32 value_bytes)
{
    struct shape shape = { .key_bytes = 4, .value_bytes = value_bytes, .capacity = 3 };
    static const struct shape outer = { .key_bytes = 4, .value_bytes = 4, .capacity = 3 };
    struct mr_packet pkt = { 0 };
    struct array_of_maps o;
    struct allocator l;
    struct global g;
    struct vector v;
    struct array a;
    u8 *value = calloc(1, value_bytes);

    CHECK(!array_create(&a, &shape, &check_config, NULL));
    CHECK(!vector_create(&v, &shape, &check_config, NULL));
    CHECK(!allocator_create(&l, &shape, &check_config, NULL));
    CHECK(!array_of_maps_create(&o, &outer, &check_config, NULL));
    for (u64 n = 0; n < 3; n++) {
        exactly(array_map_lookup_elem(&a, &shape, &n, n, &pkt), value_bytes, MR_GAP);
        exactly(vector_vector_at(&v, &shape, n, &pkt), value_bytes, MR_GAP);
        exactly((u8 *)array_of_maps_at(&o, &outer, n), sizeof(struct mr_map), MR_GAP);
        /* Before the value is the entry's stamp. */
        CHECK(allocator_allocator_lease(&l, &shape, value, &pkt) == n);
        exactly(allocator_allocator_get(&l, &shape, n, &pkt), value_bytes, 0);
    }
    CHECK(!global_create(&g, &shape, &check_config, NULL));
    exactly(global_base(&g, &shape), value_bytes, 64);
    array_destroy(&a, &shape);
    vector_destroy(&v, &shape);
    allocator_destroy(&l, &shape);
    array_of_maps_destroy(&o, &outer);
    global_destroy(&g, &shape);
    free(value);
}

static void tries(u32 value_bytes)
{
    struct shape shape = { .key_bytes = 8, .value_bytes = value_bytes, .capacity = 4, .flags = 1 };
    struct mr_packet pkt = { 0 };
    u8 *value = calloc(1, value_bytes);
    struct lpm l;

    CHECK(!lpm_create(&l, &shape, &check_config, NULL));
    CHECK(__asan_address_is_poisoned(l.trie.values));
    for (u64 n = 0; n < 4; n++) {
        u64 word = n << 32 | 32;

        CHECK(!lpm_map_update_elem(&l, &shape, &word, lpm_token(&l, &shape, &word), value, 0, &pkt));
        exactly(lpm_map_lookup_elem(&l, &shape, &word, lpm_token(&l, &shape, &word), &pkt), value_bytes, 0);
    }
    lpm_destroy(&l, &shape);
    free(value);
}

static void take(void *context, u32 object, const u8 *bytes, u64 length)
{
    (void)object;
    exactly(bytes, (u32)length, 8);
    ++*(u64 *)context;
}

static void records(void)
{
    static const struct shape shape = { .capacity = 4096 };
    struct mr_packet pkt = { 0 };
    struct ringbuf r;
    u64 taken = 0, n = 0;

    CHECK(!ringbuf_create(&r, &shape, &check_config, NULL));
    CHECK(__asan_address_is_poisoned(r.data + 8));
    for (u64 length = 1; length < 3000; length += length / 3 + 1, n++) {
        u8 *first = ringbuf_ringbuf_reserve(&r, &shape, length, 0, &pkt);
        u8 *second = ringbuf_ringbuf_reserve(&r, &shape, 9, 0, &pkt);

        exactly(first, (u32)length, 8);
        exactly(second, 9, 8);
        helper_ringbuf_submit(second, 0, &pkt);
        helper_ringbuf_discard(first, 0, &pkt);
        CHECK(ringbuf_count(&r, &shape, 0) == 2);
        ringbuf_drain(&r, &shape, 0, take, &taken);
        CHECK(taken == n + 1);
        CHECK(__asan_address_is_poisoned(first) && __asan_address_is_poisoned(second));
    }
    ringbuf_destroy(&r, &shape);
}

/* What was unmapped may be touched by whoever gets the addresses. */
static void unmapping(void)
{
    for (u64 bytes = 100; bytes < 64ull << 20; bytes *= 20) {
        u8 *p = mr_map_memory(bytes);

        CHECK(p && __asan_address_is_poisoned(p - 1) && __asan_address_is_poisoned(p + mr_mapped_bytes(bytes)));
        mr_forbid(p, 64);
        mr_unmap_memory(p, bytes);
        CHECK(!__asan_address_is_poisoned(p) && !__asan_address_is_poisoned(p - 1));
        CHECK(!__asan_address_is_poisoned(p + mr_mapped_bytes(bytes)));
    }
}

int main(void)
{
    static const u32 bytes[] = { 1, 4, 7, 8, 13, 16, 200, 4097 };

    for (u32 i = 0; i < sizeof(bytes) / sizeof(*bytes); i++) {
        keyed(4, bytes[i]);
        keyed(13, bytes[i]);
        keyed(512, bytes[i]);
        rows(bytes[i]);
        tries(bytes[i]);
    }
    records();
    unmapping();
    return check_report();
}

#else

int main(void) { return check_report(); }

#endif
