/* What KIND_bytes says is what the process grows by, from creation on, for every kind; and all of it goes
 * back. The resident set is read from /proc/self/statm. */
#include "../state/allocator.h"
#include "../state/array_of_maps.h"
#include "../state/array.h"
#include "../state/bloom_filter.h"
#include "../state/global.h"
#include "../state/hash.h"
#include "../state/hash_of_maps.h"
#include "../state/lpm.h"
#include "../state/lru_hash.h"
#include "../state/queue.h"
#include "../state/ringbuf.h"
#include "../state/sketch.h"
#include "../state/vector.h"
#include "check.h"

static s64 resident(void)
{
    char line[128] = { 0 };
    FILE *f = fopen("/proc/self/statm", "r");
    s64 total = 0, pages = 0;

    if (f) {
        if (fgets(line, sizeof(line), f) && sscanf(line, "%lld %lld", (long long *)&total, (long long *)&pages) != 2)
            pages = 0;
        fclose(f);
    }
    return pages * 4096;
}

/* Page tables and the C library's own come on top: 2% and 256 KiB are let pass, and under
 * AddressSanitizer its own record, an eighth. */
static void grew(const char *kind, s64 by, u64 bytes)
{
    s64 size = (s64)bytes < 0 ? -(s64)bytes : (s64)bytes; /* what goes back is below 0 */
    s64 slack = size / 50 + (256 << 10) + (MR_GAP ? size / 8 : 0);

    if (by < (s64)bytes - slack || by > (s64)bytes + slack)
        printf("%s: %lld bytes promised, %lld taken\n", kind, (long long)bytes, (long long)by);
    CHECK(by >= (s64)bytes - slack && by <= (s64)bytes + slack);
}

#define KIND(kind, ...)                                                                              \
    do {                                                                                             \
        static const struct shape s = { __VA_ARGS__ };                                               \
        struct kind object;                                                                          \
        s64 before = resident(), after;                                                              \
                                                                                                     \
        CHECK(kind##_create(&object, &s, &check_config, NULL) == 0);                                 \
        after = resident();                                                                          \
        grew(#kind, after - before, kind##_bytes(&s));                                               \
        kind##_destroy(&object, &s);                                                                 \
        grew(#kind, resident() - after, 0 - kind##_bytes(&s));                                       \
    } while (0)

/* By hand, from the formulas in the headers. */
static void formulas(void)
{
    static const struct shape flows = { .key_bytes = 13, .value_bytes = 8, .capacity = 65536, .expire_after = 1 };
    static const struct shape plain = { .key_bytes = 4, .value_bytes = 100, .capacity = 10 };
    static const struct shape routes = { .key_bytes = 4, .value_bytes = 4, .capacity = 1000 };

    /* buckets 64 * (8192 + 4370), slab 32 * 65536, links 4 * 65536, queue 16 * 65540: 4211904 */
    CHECK(hash_part(&flows) == 4211904 && hash_bytes(&flows) == 6 << 20);
    /* buckets 64 * (2 + 1), slab 128 * 10, links 64 */
    CHECK(hash_part(&plain) == 192 + 1280 + 64 && hash_bytes(&plain) == 4096);
    CHECK(lru_hash_part(&plain) == 192 + 1280 + 64 + 64);
    /* nodes 32 * 2000, values 8000, owners 4032, direct 524288 */
    CHECK(lpm_trie_part(&routes, lpm_form(&routes)) == 64000 + 8000 + 4032 + 524288);
}

int main(void)
{
    if (resident() == 0) {
        printf("skipped: /proc/self/statm cannot be read\n");
        return check_report();
    }
    KIND(hash, .key_bytes = 13, .value_bytes = 8, .capacity = 100000, .expire_after = 5);
    KIND(hash, .key_bytes = 4, .value_bytes = 8, .capacity = 20000);
    KIND(lru_hash, .key_bytes = 16, .value_bytes = 40, .capacity = 100000);
    KIND(array, .key_bytes = 4, .value_bytes = 1000, .capacity = 10000);
    KIND(vector, .value_bytes = 24, .capacity = 60000);
    KIND(global, .value_bytes = 3000000);
    KIND(allocator, .value_bytes = 16, .capacity = 60000, .expire_after = 9);
    KIND(sketch, .key_bytes = 8, .capacity = 100000, .rows = 5, .window = 1000);
    KIND(lpm, .key_bytes = 4, .value_bytes = 4, .capacity = 100000);
    KIND(lpm, .key_bytes = 20, .value_bytes = 8, .capacity = 1000, .flags = 1);
    KIND(ringbuf, .capacity = 1 << 20);
    KIND(queue, .value_bytes = 20, .capacity = 100000);
    KIND(bloom_filter, .value_bytes = 8, .capacity = 1000000, .rows = 5);
    KIND(array_of_maps, .key_bytes = 4, .value_bytes = 4, .capacity = 100000);
    KIND(hash_of_maps, .key_bytes = 12, .value_bytes = 4, .capacity = 100000);
    if (!MR_GAP)
        formulas();
    return check_report();
}
