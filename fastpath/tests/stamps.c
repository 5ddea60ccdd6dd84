/* stamps: a table and an allocator that cores share, their refreshes on each core's own, against those that a single core has. Who
 * plays which core is drawn; a reader that cannot tell asks again as the writer. */
#include "../sync/allocator.h"
#include "../sync/hash.h"
#include "check.h"

#define CORES 5u
#define KEYS 40u
#define AFTER 100u

static const struct shape apart = { .key_bytes = 8, .value_bytes = 8, .capacity = 24, .expire_after = AFTER, .shared = 1 };
static const struct shape single = { .key_bytes = 8, .value_bytes = 8, .capacity = 24, .expire_after = AFTER };

static u64 asked_again;

static u8 *look(struct hash *h, u64 key, u64 time, u32 core, int refresh)
{
    struct mr_packet pkt = { .time = time, .core = core };
    u64 token = hash_token(h, &apart, &key);
    u8 *found = refresh ? hash_reader_map_refresh(h, &apart, &key, token, &pkt)
                        : hash_reader_map_get(h, &apart, &key, token, &pkt);

    if (found != MR_RESTART)
        return found;
    asked_again++;
    return refresh ? hash_map_refresh(h, &apart, &key, token, &pkt) : hash_map_get(h, &apart, &key, token, &pkt);
}

static void same(void)
{
    struct mr_config config = check_config;
    struct hash a, b;
    u64 time = 1000, hits = 0, misses = 0;

    config.workers = CORES;
    CHECK(hash_create(&a, &apart, &config, NULL) == 0);
    CHECK(hash_create(&b, &single, &config, NULL) == 0);
    for (u64 step = 0; step < 200000; step++) {
        u64 key = 1 + draw(KEYS), value = draw(1000);
        u32 core = (u32)draw(CORES);
        struct mr_packet pkt = { .core = core };
        u64 what = draw(100);
        u8 *x, *y;

        time += draw(6);
        pkt.time = time;
        if (what < 90) {
            int refresh = what < 45;
            u64 token = hash_token(&b, &single, &key);

            x = look(&a, key, time, core, refresh);
            y = refresh ? hash_map_refresh(&b, &single, &key, token, &pkt)
                        : hash_map_get(&b, &single, &key, token, &pkt);
        } else if (what < 97) {
            x = hash_map_put(&a, &apart, &key, hash_token(&a, &apart, &key), (u8 *)&value, &pkt);
            y = hash_map_put(&b, &single, &key, hash_token(&b, &single, &key), (u8 *)&value, &pkt);
        } else if (what < 99) {
            CHECK(hash_map_delete(&a, &apart, &key, hash_token(&a, &apart, &key), &pkt) ==
                  hash_map_delete(&b, &single, &key, hash_token(&b, &single, &key), &pkt));
            continue;
        } else {
            if (hash_due(&a, &apart, time))
                hash_age(&a, &apart, time);
            hash_age(&b, &single, time);
            CHECK(hash_count(&a, &apart, time) == hash_count(&b, &single, time));
            continue;
        }
        CHECK(!x == !y);
        CHECK(!x || !y || !memcmp(x, y, 8));
        hits += x != NULL;
        misses += x == NULL;
    }
    CHECK(hits > 1000 && misses > 1000 && asked_again > 1000);
    hash_destroy(&a, &apart);
    hash_destroy(&b, &single);
}

/* One core's refreshes keep an entry alive that the others never see; its place begins anew. */
static void places(void)
{
    struct mr_config config = check_config;
    struct mr_packet pkt = { .time = 1000 };
    u64 key = 7, other = 8, value = 1;
    struct hash h;

    config.workers = CORES;
    CHECK(hash_create(&h, &apart, &config, NULL) == 0);
    CHECK(hash_map_put(&h, &apart, &key, hash_token(&h, &apart, &key), (u8 *)&value, &pkt) != NULL);
    for (u64 time = 1050; time < 2000; time += 50)
        CHECK(look(&h, key, time, 3, 1) != NULL);
    asked_again = 0;
    CHECK(look(&h, key, 2000, 3, 0) != NULL && asked_again == 0);
    CHECK(look(&h, key, 2000, 1, 0) != NULL && asked_again == 1);
    CHECK(look(&h, key, 2000, 2, 0) != NULL && asked_again == 1); /* the writer has told the entry */
    CHECK(look(&h, key, 2050, 0, 0) == NULL && asked_again == 2);
    pkt.time = 2050;
    hash_map_delete(&h, &apart, &key, hash_token(&h, &apart, &key), &pkt);
    /* The free place is taken again, at a time that the old refreshes would outlive. */
    pkt.time = 1900;
    CHECK(hash_map_put(&h, &apart, &other, hash_token(&h, &apart, &other), (u8 *)&value, &pkt) != NULL);
    CHECK(look(&h, other, 1999, 3, 0) != NULL && look(&h, other, 2000, 3, 0) == NULL);
    hash_destroy(&h, &apart);
}

/* A reader that runs again as a writer has refreshed nothing; where there is no room to keep, it does so
 * at once. */
static void undone(void)
{
    struct mr_config config = check_config;
    struct undo undo;
    struct mr_packet first = { .time = 1000 }, reader = { .time = 1050, .core = 2, .undo = &undo };
    struct mr_packet later = { .time = 1101 };
    u64 key = 7, value = 1, token;
    struct hash h;

    config.workers = CORES;
    CHECK(hash_create(&h, &apart, &config, NULL) == 0);
    token = hash_token(&h, &apart, &key);
    CHECK(hash_map_put(&h, &apart, &key, token, (u8 *)&value, &first) != NULL);
    undo_begin(&undo);
    CHECK(hash_reader_map_refresh(&h, &apart, &key, token, &reader) != NULL && undo.count == 1);
    CHECK(hash_reader_map_put(&h, &apart, &key, token, (u8 *)&value, &reader) != NULL && undo.count == 1);
    undo_all(&undo);
    CHECK(hash_map_get(&h, &apart, &key, token, &later) == NULL);
    CHECK(hash_map_put(&h, &apart, &key, token, (u8 *)&value, &first) != NULL);
    undo.count = UNDO_MAX;
    CHECK(hash_reader_map_refresh(&h, &apart, &key, token, &reader) == MR_RESTART);
    undo_begin(&undo);
    CHECK(hash_reader_map_refresh(&h, &apart, &key, token, &reader) != NULL);
    CHECK(hash_map_get(&h, &apart, &key, token, &later) != NULL);
    hash_destroy(&h, &apart);
}

/* What a reader may do that changes nothing, and what it may not. */
static void puts_and_deletes(void)
{
    struct mr_config config = check_config;
    struct mr_packet pkt = { .time = 1000, .core = 1 };
    u64 key = 7, absent = 9, value = 1, other = 2, token, none;
    struct hash h;

    config.workers = CORES;
    CHECK(hash_create(&h, &apart, &config, NULL) == 0);
    token = hash_token(&h, &apart, &key);
    none = hash_token(&h, &apart, &absent);
    CHECK(hash_map_put(&h, &apart, &key, token, (u8 *)&value, &pkt) != NULL);
    CHECK(hash_reader_map_put(&h, &apart, &key, token, (u8 *)&other, &pkt) == MR_RESTART);
    CHECK(hash_reader_map_put(&h, &apart, &absent, none, (u8 *)&other, &pkt) == MR_RESTART);
    CHECK(hash_reader_map_update_elem(&h, &apart, &key, token, (u8 *)&value, 0, &pkt) == 0);
    CHECK(hash_reader_map_update_elem(&h, &apart, &key, token, (u8 *)&other, 0, &pkt) == MR_RESTART_NUMBER);
    CHECK(hash_reader_map_update_elem(&h, &apart, &key, token, (u8 *)&other, 1, &pkt) == mr_errno(EEXIST));
    CHECK(hash_reader_map_update_elem(&h, &apart, &absent, none, (u8 *)&other, 2, &pkt) == mr_errno(ENOENT));
    CHECK(hash_reader_map_update_elem(&h, &apart, &absent, none, (u8 *)&other, 0, &pkt) == MR_RESTART_NUMBER);
    CHECK(hash_reader_map_update_elem(&h, &apart, &absent, none, (u8 *)&other, 3, &pkt) == mr_errno(EINVAL));
    CHECK(hash_reader_map_delete(&h, &apart, &absent, none, &pkt) == 0);
    CHECK(hash_reader_map_delete_elem(&h, &apart, &absent, none, &pkt) == mr_errno(ENOENT));
    CHECK(hash_reader_map_delete(&h, &apart, &key, token, &pkt) == MR_RESTART_NUMBER);
    CHECK(hash_reader_map_delete_elem(&h, &apart, &key, token, &pkt) == MR_RESTART_NUMBER);
    CHECK(hash_reader_map_lookup_elem(&h, &apart, &key, token, &pkt) != NULL);
    hash_destroy(&h, &apart);
}

/* What a full table refuses readers are told by themselves, and it is counted; what expires or is deleted
 * meanwhile makes room. */
static void refusals(const struct shape *shape, const struct shape *alone)
{
    struct mr_config config = check_config;
    u64 time = 1000, full = 0, told = 0, put = 0;
    struct hash a, b;

    config.workers = CORES;
    CHECK(hash_create(&a, shape, &config, NULL) == 0);
    CHECK(hash_create(&b, alone, &config, NULL) == 0);
    for (u64 step = 0; step < 100000; step++) {
        u64 key = 1 + draw(KEYS), value = draw(2), what = draw(100);
        u64 token = hash_token(&a, shape, &key), other = hash_token(&b, alone, &key);
        struct mr_packet pkt = { .time = time += draw(3), .core = (u32)draw(CORES) };
        u8 *x, *y;

        if (what < 2) {
            CHECK(hash_map_delete(&a, shape, &key, token, &pkt) == hash_map_delete(&b, alone, &key, other, &pkt));
            continue;
        }
        if (what < 40) {
            x = hash_reader_map_refresh(&a, shape, &key, token, &pkt);
            if (x == MR_RESTART)
                x = hash_map_refresh(&a, shape, &key, token, &pkt);
            y = hash_map_refresh(&b, alone, &key, other, &pkt);
        } else if (what < 70) {
            x = hash_reader_map_put(&a, shape, &key, token, (u8 *)&value, &pkt);
            told += !x;
            if (x == MR_RESTART)
                x = hash_map_put(&a, shape, &key, token, (u8 *)&value, &pkt);
            y = hash_map_put(&b, alone, &key, other, (u8 *)&value, &pkt);
            full += !y;
            put += y != NULL;
        } else {
            u64 error = hash_reader_map_update_elem(&a, shape, &key, token, (u8 *)&value, 0, &pkt);

            told += error == mr_errno(E2BIG);
            if (error == MR_RESTART_NUMBER)
                error = hash_map_update_elem(&a, shape, &key, token, (u8 *)&value, 0, &pkt);
            CHECK(error == hash_map_update_elem(&b, alone, &key, other, (u8 *)&value, 0, &pkt));
            full += error != 0;
            put += error == 0;
            continue;
        }
        CHECK(!x == !y && (!x || !memcmp(x, y, 8)));
    }
    CHECK(put > 1000 && told > 1000 && told <= full);
    CHECK(hash_full(&a, shape, time) == full && hash_full(&b, alone, time) == full);
    hash_destroy(&a, shape);
    hash_destroy(&b, alone);
}

/* A refusal that is undone has not been. */
static void refused_in_vain(void)
{
    struct mr_config config = check_config;
    struct mr_packet pkt = { .time = 1000 };
    u64 value = 7;
    struct undo undo;
    struct hash h;

    config.workers = CORES;
    CHECK(hash_create(&h, &apart, &config, NULL) == 0);
    for (u64 key = 1; key <= apart.capacity; key++)
        CHECK(hash_map_put(&h, &apart, &key, hash_token(&h, &apart, &key), (u8 *)&value, &pkt));
    undo_begin(&undo);
    pkt.undo = &undo;
    for (u64 key = 100; key < 100 + UNDO_MAX; key++)
        CHECK(!hash_reader_map_put(&h, &apart, &key, hash_token(&h, &apart, &key), (u8 *)&value, &pkt));
    CHECK(hash_full(&h, &apart, pkt.time) == UNDO_MAX);
    /* There is no room to keep another. */
    value = 99;
    CHECK(hash_reader_map_put(&h, &apart, &value, hash_token(&h, &apart, &value), (u8 *)&value, &pkt) == MR_RESTART);
    undo_all(&undo);
    CHECK(hash_full(&h, &apart, pkt.time) == 0);
    hash_destroy(&h, &apart);
}

static const struct shape lasting = { .key_bytes = 8, .value_bytes = 8, .capacity = 24, .shared = 1 };
static const struct shape lasting_single = { .key_bytes = 8, .value_bytes = 8, .capacity = 24 };

static const struct shape leased = { .key_bytes = 2, .value_bytes = 8, .capacity = 10, .expire_after = AFTER, .first = 100, .shared = 1 };
static const struct shape leased_single = { .key_bytes = 2, .value_bytes = 8, .capacity = 10, .expire_after = AFTER, .first = 100 };

static u8 *ask(struct allocator *a, u64 number, u32 core, int refresh, u64 time)
{
    struct mr_packet pkt = { .time = time, .core = core };
    u8 *found = refresh ? allocator_reader_allocator_refresh(a, &leased, number, &pkt)
                        : allocator_reader_allocator_get(a, &leased, number, &pkt);

    if (found != MR_RESTART)
        return found;
    asked_again++;
    return refresh ? allocator_allocator_refresh(a, &leased, number, &pkt)
                   : allocator_allocator_get(a, &leased, number, &pkt);
}

static void leases(void)
{
    struct mr_config config = check_config;
    struct allocator a, b;
    u64 time = 1000, hits = 0, misses = 0, full = 0, told = 0;

    config.workers = CORES;
    asked_again = 0;
    CHECK(allocator_create(&a, &leased, &config, NULL) == 0);
    CHECK(allocator_create(&b, &leased_single, &config, NULL) == 0);
    for (u64 step = 0; step < 200000; step++) {
        u64 number = 98 + draw(30), value = draw(1000);
        struct mr_packet pkt = { 0 };
        u64 what = draw(100);

        time += draw(5);
        pkt.time = time;
        if (what < 80) {
            u8 *x = ask(&a, number, (u32)draw(CORES), what < 50, time);
            u8 *y = what < 50 ? allocator_allocator_refresh(&b, &leased_single, number, &pkt)
                              : allocator_allocator_get(&b, &leased_single, number, &pkt);

            CHECK(!x == !y && (!x || !y || !memcmp(x, y, 8)));
            hits += x != NULL;
            misses += x == NULL;
        } else if (what < 94) {
            u64 x;

            pkt.core = (u32)draw(CORES);
            x = allocator_reader_allocator_lease(&a, &leased, (u8 *)&value, &pkt);
            told += x != MR_RESTART_NUMBER;
            if (x == MR_RESTART_NUMBER)
                x = allocator_allocator_lease(&a, &leased, (u8 *)&value, &pkt);
            CHECK(x == allocator_allocator_lease(&b, &leased_single, (u8 *)&value, &pkt));
            full += x == UINT64_MAX;
        } else if (what < 97) {
            CHECK(allocator_allocator_free(&a, &leased, number, &pkt) ==
                  allocator_allocator_free(&b, &leased_single, number, &pkt));
        } else {
            if (allocator_due(&a, &leased, time))
                allocator_age(&a, &leased, time);
            allocator_age(&b, &leased_single, time);
            CHECK(allocator_count(&a, &leased, time) == allocator_count(&b, &leased_single, time));
        }
    }
    CHECK(hits > 1000 && misses > 1000 && full > 100 && asked_again > 1000);
    CHECK(told > 100 && told <= full);
    CHECK(allocator_full(&a, &leased, time) == full && allocator_full(&b, &leased_single, time) == full);
    allocator_destroy(&a, &leased);
    allocator_destroy(&b, &leased_single);
}

int main(void)
{
    same();
    places();
    undone();
    puts_and_deletes();
    leases();
    refusals(&apart, &single);
    refusals(&lasting, &lasting_single);
    refused_in_vain();
    return check_report();
}
