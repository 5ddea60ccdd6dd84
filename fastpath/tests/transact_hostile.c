/* Numbers and elements in transactions: a randomised comparison with arrays, and what hostile packets do: one that allocates in a loop, pools
 * that run dry, a clock that goes back. Orders of several cores are explored in transact.c. */
#include "../state/shared_allocator.h"
#include "../state/shared_vector.h"
#include "check.h"

enum { CORES = 3, NUMBERS = 90, FIRST = 1000, LIFE = 500 };

static const struct shape numbers = { .key_bytes = 8, .value_bytes = 8, .capacity = NUMBERS, .first = FIRST, .expire_after = LIFE,
                                      .shared = 1, .numbered = 1 };
static const struct shape lasting = { .key_bytes = 8, .value_bytes = 8, .capacity = NUMBERS, .first = FIRST, .shared = 1,
                                      .numbered = 1 };
static const struct shape elements = { .key_bytes = 8, .value_bytes = 12, .capacity = 40, .shared = 1, .numbered = 1 };

static struct lock lock;
static struct transact core[CORES];
static u64 whys[CORES][TRANSACT_WHYS];

static void begin(void)
{
    CHECK(lock_create(&lock, CORES) == 0);
    memset(whys, 0, sizeof whys);
    for (u32 c = 0; c < CORES; c++) {
        transact_create(&core[c], &lock, c);
        core[c].whys = whys[c];
    }
}

enum what { LEASE, GET, REFRESH, FREE, STORE, AT };

struct call {
    enum what what;
    u64 number, value;
    u32 times; /* so often in one packet */
};

static struct shared_allocator pools;
static struct shared_vector vector;

/* The calls of a packet; 0: again. */
static int calls(const struct shape *s, const struct call *call, struct mr_packet *pkt, u64 *result)
{
    u8 *p = NULL;

    for (u32 i = 0; i < call->times; i++) {
        switch (call->what) {
        case LEASE:
            result[i] = shared_allocator_copied_allocator_lease(&pools, s, (const u8 *)&call->value, pkt);
            break;
        case FREE:
            result[i] = shared_allocator_copied_allocator_free(&pools, s, call->number + i, pkt);
            break;
        case AT:
            p = shared_vector_copied_vector_at(&vector, s, call->number, pkt);
            break;
        case GET:
        case STORE:
            p = shared_allocator_copied_allocator_get(&pools, s, call->number, pkt);
            break;
        case REFRESH:
            p = shared_allocator_copied_allocator_refresh(&pools, s, call->number, pkt);
            break;
        }
        if (call->what == LEASE || call->what == FREE) {
            if (result[i] == MR_RESTART_NUMBER)
                return 0;
            continue;
        }
        if (p == MR_RESTART)
            return 0;
        result[i] = p ? mr_load64(p) : UINT64_MAX;
        if (p && (call->what == STORE || call->what == AT))
            mr_store64(p, call->value);
    }
    return 1;
}

/* A packet in as many attempts as it takes. Nobody is beside it. */
static void packet(const struct shape *s, u32 c, u64 now, const struct call *call, u64 *result)
{
    struct transact *t = &core[c];
    struct mr_packet pkt = { .time = now, .core = c, .undo = t };

    lock_read(&lock, c);
    t->time = now;
    transact_begin(t);
    while (!calls(s, call, &pkt, result) || !transact_commit(t)) {
        transact_again(t);
        CHECK(t->attempts <= TRANSACT_ALONE);
        transact_begin(t);
    }
    transact_end(t);
    lock_read_end(&lock, c);
}

static u64 once(const struct shape *s, u32 c, u64 now, enum what what, u64 number, u64 value)
{
    struct call call = { what, number, value, 1 };
    u64 result = 0;

    packet(s, c, now, &call, &result);
    return result;
}

/* Every number is leased once or free once. */
static void sound(const struct shape *s)
{
    u8 free[NUMBERS] = { 0 };
    u32 owned = 0;

    for (u32 c = 0; c < CORES; c++) {
        struct pool *p = &pools.map.pools.pool[c];
        const u32 list[] = { p->free, p->fresh, p->waiting, p->returned };

        for (u32 l = 0; l < 4; l++)
            for (u32 i = list[l], n = 0; i != POOLS_NIL && n <= NUMBERS; i = pools.map.pools.link[i], n++)
                free[i]++;
        owned += p->owned;
        CHECK(lock.line[c].next == lock.line[c].serving);
    }
    CHECK(owned == NUMBERS);
    for (u32 i = 0; i < NUMBERS; i++) {
        u64 word = *transact_map_word(&pools.map, s, i);

        CHECK(!(word & (TRANSACT_TAKEN | TRANSACT_DYING)) && free[i] == !!(word & TRANSACT_DEAD));
    }
}

static void as_arrays(void)
{
    struct mr_config config = check_config;
    u8 leased[NUMBERS] = { 0 };
    u64 value[NUMBERS], stamp[NUMBERS], now = 1000, refused = 0, row[40] = { 0 };

    begin();
    config.workers = CORES;
    CHECK(shared_allocator_create(&pools, &numbers, &config, NULL) == 0);
    CHECK(shared_vector_create(&vector, &elements, &config, NULL) == 0);
    for (u32 step = 0; step < 60000; step++) {
        u32 c = (u32)draw(CORES), at = (u32)draw(NUMBERS), live = 0;
        u64 given = draw(1 << 20), found, index = draw(44);
        int there;

        now += draw(step / 10000 % 2 ? 3 : 12);
        for (u32 i = 0; i < NUMBERS; i++) {
            leased[i] = leased[i] && now - stamp[i] < LIFE;
            live += leased[i];
        }
        there = leased[at];
        switch (draw(6)) {
        case 0:
        case 1:
            found = once(&numbers, c, now, LEASE, 0, given);
            CHECK((found == UINT64_MAX) == (live == NUMBERS));
            refused += found == UINT64_MAX;
            if (found == UINT64_MAX)
                break;
            CHECK(found >= FIRST && found < FIRST + NUMBERS && !leased[found - FIRST]);
            leased[found - FIRST] = 1;
            value[found - FIRST] = given;
            stamp[found - FIRST] = now;
            break;
        case 2:
            found = once(&numbers, c, now, REFRESH, FIRST + at, 0);
            CHECK(found == (there ? value[at] : UINT64_MAX));
            stamp[at] = now;
            break;
        case 3:
            found = once(&numbers, c, now, STORE, FIRST + at, given);
            CHECK(found == (there ? value[at] : UINT64_MAX));
            value[at] = given;
            break;
        case 4:
            if (draw(2)) {
                CHECK(once(&numbers, c, now, FREE, FIRST + at, 0) == (u64)there);
                leased[at] = 0;
            } else {
                CHECK(once(&numbers, c, now, GET, FIRST + NUMBERS + at, 0) == UINT64_MAX);
                CHECK(once(&numbers, c, now, FREE, FIRST - 1 - at, 0) == 0);
            }
            break;
        default:
            found = once(&elements, c, now, AT, index, given);
            CHECK(found == (index < 40 ? row[index] : UINT64_MAX));
            if (index < 40)
                row[index] = given;
            lock_read(&lock, c);
            shared_allocator_settle(&core[c], &pools, &numbers, now);
            lock_read_end(&lock, c);
            break;
        }
        if (step % 64 == 0) {
            sound(&numbers);
            live = 0;
            for (u32 i = 0; i < NUMBERS; i++)
                live += leased[i] && now - stamp[i] < LIFE;
            CHECK(shared_allocator_count(&pools, &numbers, now) == live);
        }
    }
    CHECK(refused > 10 && shared_allocator_full(&pools, &numbers, now) == refused);
    shared_allocator_destroy(&pools, &numbers);
    shared_vector_destroy(&vector, &elements);
    lock_destroy(&lock);
}

/* One packet leases more than fits its sets: it runs alone, and has all that there are; then none, which is counted. */
static void greedy(void)
{
    struct mr_config config = check_config;
    u64 result[NUMBERS + 5];
    u8 seen[NUMBERS] = { 0 };
    struct call call = { LEASE, 0, 7, NUMBERS + 5 };

    begin();
    config.workers = CORES;
    CHECK(shared_allocator_create(&pools, &lasting, &config, NULL) == 0);
    packet(&lasting, 1, 10, &call, result);
    for (u32 i = 0; i < NUMBERS; i++) {
        CHECK(result[i] - FIRST < NUMBERS && !seen[result[i] - FIRST]++);
    }
    for (u32 i = NUMBERS; i < NUMBERS + 5; i++)
        CHECK(result[i] == UINT64_MAX);
    CHECK(core[1].count.alone == 1 && whys[1][TRANSACT_WHY_ROOM] == 1);
    CHECK(shared_allocator_full(&pools, &lasting, 10) == 5);
    sound(&lasting);
    /* Who comes then is refused beside others, without the lines; and one that is given back is anybody's. */
    CHECK(once(&lasting, 0, 11, LEASE, 0, 1) == UINT64_MAX && core[0].count.alone == 0);
    CHECK(once(&lasting, 2, 12, FREE, FIRST + 5, 0) == 1);
    CHECK(once(&lasting, 0, 13, LEASE, 0, 1) == FIRST + 5);
    CHECK(core[0].count.alone == 1 && whys[0][TRANSACT_WHY_POOL] == 1);
    /* All of them are given back by one packet, too. */
    call = (struct call){ FREE, FIRST, 0, NUMBERS };
    packet(&lasting, 2, 14, &call, result);
    CHECK(shared_allocator_count(&pools, &lasting, 14) == 0 && core[2].count.alone == 1);
    sound(&lasting);
    shared_allocator_destroy(&pools, &lasting);
    lock_destroy(&lock);
}

/* The clock goes back: no lease is shortened by that, none gets longer than from its latest refresh, and nothing is lost. */
static void backwards(void)
{
    struct mr_config config = check_config;
    u64 number, now = 100000;

    begin();
    config.workers = CORES;
    CHECK(shared_allocator_create(&pools, &numbers, &config, NULL) == 0);
    number = once(&numbers, 0, 1000, LEASE, 0, 5);
    CHECK(once(&numbers, 1, 1400, REFRESH, number, 0) == 5);
    CHECK(once(&numbers, 1, 900, REFRESH, number, 0) == 5); /* the stamp lies ahead: its age is 0, and it stays */
    CHECK(once(&numbers, 2, 10, GET, number, 0) == 5);
    CHECK(once(&numbers, 2, 1899, GET, number, 0) == 5);
    CHECK(once(&numbers, 2, 1900, GET, number, 0) == UINT64_MAX);
    for (u32 step = 0; step < 20000; step++) {
        u32 c = (u32)draw(CORES);
        u64 at = draw(3) ? now : now - draw(2 * LIFE), which = FIRST + draw(NUMBERS);

        now += draw(8);
        switch (draw(4)) {
        case 0:
            once(&numbers, c, at, LEASE, 0, step);
            break;
        case 1:
            once(&numbers, c, at, REFRESH, which, 0);
            break;
        case 2:
            once(&numbers, c, at, FREE, which, 0);
            break;
        default:
            lock_read(&lock, c);
            shared_allocator_settle(&core[c], &pools, &numbers, at);
            lock_read_end(&lock, c);
            break;
        }
        if (step % 16 == 0)
            sound(&numbers);
    }
    /* All that there is ends when nobody refreshes it, and can be leased again. */
    now += 3 * LIFE;
    CHECK(shared_allocator_count(&pools, &numbers, now) == 0);
    for (u32 i = 0; i < NUMBERS; i++)
        CHECK(once(&numbers, i % CORES, now, LEASE, 0, i) != UINT64_MAX);
    CHECK(once(&numbers, 0, now, LEASE, 0, 0) == UINT64_MAX);
    sound(&numbers);
    shared_allocator_destroy(&pools, &numbers);
    lock_destroy(&lock);
}

int main(void)
{
    as_arrays();
    greedy();
    backwards();
    return check_report();
}
