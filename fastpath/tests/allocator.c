/* allocator against a model that scans: which number is leased, by whom it may be used, until when. */
#include "../state/allocator.h"
#include "check.h"

enum { MOST = 200, NEVER, FREED, LEASED };

struct model {
    u64 stamp[MOST], since[MOST], order[MOST], value[MOST];
    int state[MOST];
    u64 clock;
};

static int leased(const struct model *m, const struct shape *s, u64 i, u64 now)
{
    return m->state[i] == LEASED &&
           !(s->expire_after && now >= m->stamp[i] && now - m->stamp[i] >= s->expire_after);
}

/* The number to lease next: never leased before freed, then by the time it became free; two freed at
 * one time, in the order of freeing; against an expired one of that time, the lower number. */
static s64 model_pick(const struct model *m, const struct shape *s, u64 now)
{
    s64 freed = -1, expired = -1;

    for (u64 i = 0; i < s->capacity; i++)
        if (m->state[i] == NEVER)
            return (s64)i;
    for (u64 i = 0; i < s->capacity; i++) {
        if (m->state[i] == FREED && (freed < 0 || m->order[i] < m->order[freed]))
            freed = (s64)i;
        if (m->state[i] == LEASED && !leased(m, s, i, now) &&
            (expired < 0 || m->stamp[i] < m->stamp[expired]))
            expired = (s64)i;
    }
    if (freed < 0 || expired < 0)
        return freed < 0 ? expired : freed;
    if (m->stamp[expired] + s->expire_after != m->since[freed])
        return m->stamp[expired] + s->expire_after < m->since[freed] ? expired : freed;
    return expired < freed ? expired : freed;
}

/* A number that is set is leased; those below it that never were are given back in their order. */
static void model_set(struct model *m, u64 i, u64 value, int there, u64 now)
{
    for (u64 j = 0; j < i; j++) {
        if (m->state[j] != NEVER)
            continue;
        m->state[j] = FREED;
        m->since[j] = now;
        m->order[j] = m->clock++;
    }
    m->value[i] = value;
    m->state[i] = LEASED;
    if (!there)
        m->stamp[i] = now;
}

static void random_operations(u64 capacity, u64 first, u64 expire_after, int ageing)
{
    struct shape shape = { .key_bytes = 8, .value_bytes = 8, .capacity = capacity, .first = first, .expire_after = expire_after };
    const struct shape *s = &shape;
    struct mr_packet pkt = { .time = 5000 };
    static struct model m;
    struct allocator a;

    memset(&m, 0, sizeof(m));
    for (u64 i = 0; i < capacity; i++)
        m.state[i] = NEVER;
    CHECK(allocator_create(&a, s, &check_config, NULL) == 0);
    for (u64 step = 0; step < 20000; step++) {
        u64 i = draw(capacity + 2), number = first + i, value = step, got = 0, key = number;
        int there;
        s64 pick;
        u8 *p;

        pkt.time += draw(20) ? draw(2) : draw(expire_after + 2);
        if (ageing && draw(4) == 0)
            allocator_age(&a, s, pkt.time);
        allocator_prefetch(&a, s, allocator_token(&a, s, &number));
        there = i < capacity && leased(&m, s, i, pkt.time);
        switch (draw(6)) {
        case 0:
        case 1:
            pick = model_pick(&m, s, pkt.time);
            CHECK((s64)allocator_allocator_lease(&a, s, (u8 *)&value, &pkt) == (pick < 0 ? -1 : (s64)first + pick));
            if (pick >= 0) {
                m.state[pick] = LEASED;
                m.stamp[pick] = pkt.time;
                m.value[pick] = value;
            }
            break;
        case 2:
            p = allocator_allocator_get(&a, s, number, &pkt);
            CHECK(!p == !there);
            CHECK(!p || !there || mr_load64(p) == m.value[i]);
            break;
        case 3:
            p = allocator_allocator_refresh(&a, s, number, &pkt);
            CHECK(!p == !there);
            if (there)
                m.stamp[i] = pkt.time;
            break;
        case 4:
            if (draw(2))
                break;
            if (draw(2))
                CHECK(allocator_allocator_free(&a, s, number, &pkt) == (u64)there);
            else
                CHECK(allocator_remove(&a, s, (u8 *)&key, pkt.time) == (there ? 0 : -ENOENT));
            if (there) {
                m.state[i] = FREED;
                m.since[i] = pkt.time;
                m.order[i] = m.clock++;
            }
            break;
        case 5:
            CHECK(allocator_get(&a, s, (u8 *)&key, (u8 *)&got, pkt.time) == (there ? 0 : -ENOENT));
            CHECK(!there || got == m.value[i]);
            if (draw(2)) {
                CHECK(allocator_set(&a, s, (u8 *)&key, (u8 *)&value, pkt.time) == (i < capacity ? 0 : -ENOENT));
                if (i < capacity)
                    model_set(&m, i, value, there, pkt.time);
            }
            break;
        }
        if (step % 128 == 0) {
            u64 cursor = 0, n = 0, number_seen, all = 0;

            while (allocator_next(&a, s, &cursor, (u8 *)&number_seen, (u8 *)&got, pkt.time) == 0) {
                CHECK(leased(&m, s, number_seen - first, pkt.time));
                CHECK(got == m.value[number_seen - first]);
                n++;
            }
            for (u64 j = 0; j < capacity; j++)
                all += leased(&m, s, j, pkt.time);
            CHECK(n == all && allocator_count(&a, s, pkt.time) == all);
            /* Those that have expired and were not reclaimed are among the taken ones. */
            CHECK(allocator_used(&a, s, pkt.time) >= all && allocator_used(&a, s, pkt.time) <= s->capacity);
        }
    }
    allocator_destroy(&a, s);
}

static void boundary(void)
{
    static const struct shape s = { .value_bytes = 0, .capacity = 1, .first = 1024, .expire_after = 100 };
    struct mr_packet pkt = { .time = 1000 };
    struct allocator a;

    CHECK(allocator_create(&a, &s, &check_config, NULL) == 0);
    CHECK(allocator_allocator_lease(&a, &s, (const u8 *)"", &pkt) == 1024);
    CHECK(allocator_allocator_lease(&a, &s, (const u8 *)"", &pkt) == UINT64_MAX);
    pkt.time = 1099;
    CHECK(allocator_allocator_get(&a, &s, 1024, &pkt));
    CHECK(allocator_allocator_lease(&a, &s, (const u8 *)"", &pkt) == UINT64_MAX);
    pkt.time = 1100;
    CHECK(!allocator_allocator_get(&a, &s, 1024, &pkt));
    CHECK(!allocator_allocator_refresh(&a, &s, 1024, &pkt));
    CHECK(!allocator_allocator_free(&a, &s, 1024, &pkt));
    CHECK(allocator_allocator_lease(&a, &s, (const u8 *)"", &pkt) == 1024);
    pkt.time = 900; /* back: of age 0 */
    CHECK(allocator_allocator_refresh(&a, &s, 1024, &pkt));
    pkt.time = 1199;
    CHECK(allocator_allocator_get(&a, &s, 1024, &pkt));
    CHECK(!allocator_allocator_get(&a, &s, 1023, &pkt));
    CHECK(!allocator_allocator_get(&a, &s, 1025, &pkt));
    CHECK(!allocator_allocator_get(&a, &s, UINT64_MAX, &pkt));
    pkt.time = 1200;
    CHECK(!allocator_allocator_get(&a, &s, 1024, &pkt));
    allocator_destroy(&a, &s);
}

static void refused_declarations(void)
{
    struct shape s = { .value_bytes = 8, .capacity = 2, .first = INT64_MAX };
    struct allocator a;

    CHECK(allocator_create(&a, &s, &check_config, NULL) == -EINVAL);
    s.first = INT64_MAX - 2;
    CHECK(allocator_create(&a, &s, &check_config, NULL) == 0);
    allocator_destroy(&a, &s);
    s.capacity = 0;
    CHECK(allocator_create(&a, &s, &check_config, NULL) == -EINVAL);
}

/* Hostile stamps, at the end of 64 bits. */
static void end_of_time(void)
{
    static const struct shape s = { .value_bytes = 0, .capacity = 1, .expire_after = 100 };
    struct mr_packet pkt = { .time = UINT64_MAX - 50 };
    struct allocator a;

    CHECK(allocator_create(&a, &s, &check_config, NULL) == 0);
    CHECK(allocator_allocator_lease(&a, &s, (const u8 *)"", &pkt) == 0);
    pkt.time = UINT64_MAX;
    CHECK(allocator_allocator_lease(&a, &s, (const u8 *)"", &pkt) == UINT64_MAX);
    CHECK(allocator_allocator_get(&a, &s, 0, &pkt));
    allocator_age(&a, &s, pkt.time);
    allocator_destroy(&a, &s);
}

/* Control's keys have the bytes that the declaration says, no more are touched. */
static void short_keys(void)
{
    static const struct shape s = { .key_bytes = 2, .value_bytes = 8, .capacity = 4, .first = 0x1230 };
    struct mr_packet pkt = { 0 };
    struct allocator a;
    u64 value = 5, cursor = 0;
    u8 *key = malloc(2); /* exactly, for AddressSanitizer to see */

    CHECK(allocator_create(&a, &s, &check_config, NULL) == 0);
    CHECK(allocator_allocator_lease(&a, &s, (u8 *)&value, &pkt) == 0x1230);
    CHECK(allocator_next(&a, &s, &cursor, key, (u8 *)&value, 0) == 0 && mr_load16(key) == 0x1230);
    CHECK(allocator_get(&a, &s, key, (u8 *)&value, 0) == 0 && value == 5);
    CHECK(allocator_used(&a, &s, 0) == 1);
    CHECK(allocator_remove(&a, &s, key, 0) == 0 && allocator_count(&a, &s, 0) == 0);
    CHECK(allocator_used(&a, &s, 0) == 0);
    allocator_destroy(&a, &s);
    free(key);
}

int main(void)
{
    for (int ageing = 0; ageing < 2; ageing++) {
        random_operations(1, 0, 50, ageing);
        random_operations(2, 1, 0, ageing);
        random_operations(10, 1024, 30, ageing);
        random_operations(100, 1ull << 40, 400, ageing);
        random_operations(200, 7, 0, ageing);
    }
    boundary();
    short_keys();
    end_of_time();
    refused_declarations();
    return check_report();
}
