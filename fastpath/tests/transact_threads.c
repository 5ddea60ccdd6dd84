/* transact_threads: threads that work on small maps, numbers that are leased and elements of a vector, for orders of memory (ThreadSanitizer) and for what the bounded
 * orders of transact.c do not reach. Numbers are moved between entries, so that their sum stays; entries come and go; some
 * expire. */
#include <pthread.h>

static void switch_threads(void);
#define MR_POINT() switch_threads()
#define LOCK_SPINS 16u
#define TRANSACT_ALONE 12u
#include "../state/shared_allocator.h"
#include "../state/shared_vector.h"
#include "check.h"

#define THREADS 4u
#define ACCOUNTS 8u
#define ROUNDS 4000u

/* A thread gives way at one of 64 points. */
static __thread u64 yields, yield_seed;

static void switch_threads(void)
{
    if (mr_random(yield_seed, yields++) % 64 == 0)
        sched_yield();
}

static struct lock lock;
static struct transact_map accounts, visitors;
static const struct shape account_shape = { .key_bytes = 8, .value_bytes = 16, .capacity = 2 * ACCOUNTS, .shared = 1 };
static const struct shape visitor_shape = {
    .key_bytes = 4, .value_bytes = 12, .capacity = 24, .expire_after = 640, .shared = 1
};
static struct shared_allocator numbers;
static struct shared_vector elements;
static const struct shape number_shape = { .key_bytes = 8, .value_bytes = 16, .capacity = 24, .shared = 1, .numbered = 1, .first = 7 };
static const struct shape element_shape = { .key_bytes = 8, .value_bytes = 16, .capacity = ACCOUNTS, .shared = 1, .numbered = 1 };
static u64 refused[THREADS], torn[THREADS], aborts[THREADS], alone[THREADS], held[THREADS], commits[THREADS];

static u64 number(const u8 *p) { return __atomic_load_n((const u64 *)p, __ATOMIC_RELAXED); }
static void set(u8 *p, u64 n) { __atomic_store_n((u64 *)p, n, __ATOMIC_RELAXED); }

/* A packet: half of them have their words in places, as long as all is well (sync/transact_few.h). */
struct packet {
    struct transact *t;
    struct transact_few few;
    struct mr_packet pkt;
    u64 copy[2];
    int places;
};

/* From here on its words are in the sets. */
static struct transact *sets(struct packet *p)
{
    if (p->places)
        transact_few_sets(p->t, &p->pkt, &p->few);
    return p->t;
}

static u8 *get(struct packet *p, struct transact_map *m, const struct shape *s, const u64 *key, int refresh, int stores)
{
    u64 token = transact_map_token(m, s, key);
    struct transact_few_read *f = &p->few.read[!stores];
    u8 *value;

    if (p->places && p->few.state == TRANSACT_FEW_PLACES && !f->word) {
        p->few.stored |= (u32)stores;
        if (transact_map_few_get(p->t, m, s, key, token, refresh, stores ? (u8 *)p->copy : NULL, p->pkt.time, f, &value))
            return value;
    }
    return transact_map_get(sets(p), m, s, key, token, refresh, stores);
}

static u8 *get_number(struct packet *p, struct transact_map *m, const struct shape *s, u64 number, int refresh, int stores)
{
    struct transact_few_read *f = &p->few.read[!stores];
    u8 *value;

    if (p->places && p->few.state == TRANSACT_FEW_PLACES && !f->word) {
        p->few.stored |= (u32)stores;
        if (transact_leases_few_get(p->t, m, s, number - s->first, refresh, stores ? (u8 *)p->copy : NULL, p->pkt.time, f, &value))
            return value;
    }
    return transact_leases_get(sets(p), m, s, number, refresh, stores);
}

/* Moves 1 from one account to another; an account of 0 is closed, and one that is not there is opened. 0: again. */
static int move(struct packet *packet, u64 from, u64 to)
{
    u64 a = transact_map_token(&accounts, &account_shape, &from), b = transact_map_token(&accounts, &account_shape, &to);
    u64 one[2] = { 1, ~1ull };
    u8 *p = get(packet, &accounts, &account_shape, &from, 0, 1), *q;

    if (p == MR_RESTART)
        return 0;
    if (!p || from == to)
        return 1;
    if (number(p) == 1) {
        if (transact_map_delete(sets(packet), &accounts, &account_shape, &from, a) == MR_RESTART_NUMBER)
            return 0;
    } else {
        set(p, number(p) - 1);
        set(p + 8, ~number(p));
    }
    q = get(packet, &accounts, &account_shape, &to, 0, 1);
    if (q == MR_RESTART)
        return 0;
    if (!q)
        return transact_map_put(sets(packet), &accounts, &account_shape, &to, b, (const u8 *)one) != MR_RESTART;
    set(q, number(q) + 1);
    set(q + 8, ~number(q));
    return 1;
}

/* The sum of two accounts' halves says whether a packet that committed saw one moment. */
static int look(struct packet *packet, u64 key, u64 *wrong)
{
    u8 *p = get(packet, &accounts, &account_shape, &key, 0, 0);

    if (p == MR_RESTART)
        return 0;
    *wrong = p && number(p) != ~number(p + 8);
    return 1;
}

/* Moves 1 from one element to another; only looks at both if both are the same. */
static int shift(struct packet *packet, u64 from, u64 to, u64 *wrong)
{
    u8 *p = get_number(packet, &elements.map, &element_shape, from, 0, from != to), *q;

    if (p == MR_RESTART)
        return 0;
    if (from == to) {
        *wrong = number(p) != ~number(p + 8);
        return 1;
    }
    set(p, number(p) - 1);
    set(p + 8, ~number(p));
    q = get_number(packet, &elements.map, &element_shape, to, 0, 1);
    if (q == MR_RESTART)
        return 0;
    set(q, number(q) + 1);
    set(q + 8, ~number(q));
    return 1;
}

/* Leases a number where the thread has none, in `after`; else the number is still its own, and it frees it or keeps it. */
static int rent(struct packet *packet, u32 who, u64 mine, u64 *after, int frees, u64 *wrong)
{
    u64 value[2] = { who, ~(u64)who };
    u8 *p;

    *after = mine;
    if (mine == UINT64_MAX) {
        *after = transact_leases_lease(sets(packet), &numbers.map, &number_shape, (const u8 *)value);
        return *after != MR_RESTART_NUMBER;
    }
    p = get_number(packet, &numbers.map, &number_shape, mine, 1, 0);
    if (p == MR_RESTART)
        return 0;
    *wrong = !p || number(p) != who || number(p + 8) != ~(u64)who;
    if (!frees)
        return 1;
    *after = UINT64_MAX;
    value[0] = transact_leases_free(sets(packet), &numbers.map, &number_shape, mine);
    *wrong |= value[0] != 1;
    return value[0] != MR_RESTART_NUMBER;
}

/* Sees a visitor again, or for the first time; his value is his key. */
static int visit(struct packet *packet, u32 who, u64 *full, u64 *wrong)
{
    u64 key = who, token = transact_map_token(&visitors, &visitor_shape, &key);
    u32 value[3] = { who, ~who, who };
    u8 *p = get(packet, &visitors, &visitor_shape, &key, 1, 0);

    *full = *wrong = 0;
    if (p == MR_RESTART)
        return 0;
    if (p) {
        *wrong = number(p) != ((u64)~who << 32 | who);
        return 1;
    }
    p = transact_map_put(sets(packet), &visitors, &visitor_shape, &key, token, (const u8 *)value);
    *full = !p;
    return p != MR_RESTART;
}

static void *work(void *argument)
{
    u32 core = (u32)(uintptr_t)argument;
    struct transact *t = malloc(sizeof *t);
    u64 seed = mr_random(3, core), mine[8];

    yield_seed = seed;
    transact_create(t, &lock, core);
    memset(mine, 0xff, sizeof mine);
    for (u64 round = 0; round < ROUNDS; round++) {
        u64 r = mr_random(seed, round);

        if (round % 8 == 0) {
            lock_read(&lock, core);
            transact_map_age(t, &visitors, &visitor_shape, 10 * round);
            transact_map_age(t, &accounts, &account_shape, 10 * round);
            shared_allocator_settle(t, &numbers, &number_shape, 10 * round);
        }
        for (;;) {
            u64 full = 0, wrong = 0, after = UINT64_MAX, *own = &mine[(r >> 40) % 8];
            struct packet p = { .t = t, .pkt = { .time = 10 * round }, .places = r >> 32 & 1 };
            int done;

            p.few.state = transact_few_begin(t);
            t->time = 10 * round;
            if (!p.places || p.few.state == TRANSACT_FEW_SETS)
                transact_begin(t);
            if (r % 8 == 0)
                done = look(&p, (r >> 8) % ACCOUNTS, &wrong);
            else if (r % 8 == 1)
                done = rent(&p, core, *own, &after, r >> 33 & 1, &wrong);
            else if (r % 8 == 2)
                done = shift(&p, (r >> 8) % ACCOUNTS, (r >> 16) % ACCOUNTS, &wrong);
            else if (r % 4 == 1)
                done = visit(&p, (u32)(r >> 8) % 40, &full, &wrong);
            else
                done = move(&p, (r >> 8) % ACCOUNTS, (r >> 16) % ACCOUNTS);
            if (done && (p.places ? transact_few_commit(t, &p.pkt, &p.few) : transact_commit(t))) {
                refused[core] += full;
                torn[core] += wrong;
                if (r % 8 == 1)
                    *own = after;
                break;
            }
            sets(&p);
            transact_again(t);
        }
        transact_end(t);
        if (round % 8 == 7) {
            transact_counted(t, 8);
            lock_read_end(&lock, core);
        } else {
            lock_read_again(&lock, core);
        }
    }
    aborts[core] = t->count.aborts;
    alone[core] = t->count.alone;
    held[core] = t->count.holds;
    commits[core] = t->count.commits;
    free(t);
    return NULL;
}

int main(void)
{
    struct mr_config config = check_config;
    struct transact *t = malloc(sizeof *t);
    pthread_t thread[THREADS];
    u64 sum = 0, entries = 0, cursor = 0, key, value[2], all = 0, a = 0, h = 0, w = 0, c = 0;

    config.workers = THREADS;
    CHECK(lock_create(&lock, THREADS) == 0);
    CHECK(transact_map_create(&accounts, &account_shape, &config) == 0);
    CHECK(transact_map_create(&visitors, &visitor_shape, &config) == 0);
    CHECK(shared_allocator_create(&numbers, &number_shape, &config, NULL) == 0);
    CHECK(shared_vector_create(&elements, &element_shape, &config, NULL) == 0);
    for (u64 i = 0; i < ACCOUNTS; i++)
        CHECK(shared_vector_set(&elements, &element_shape, (const u8 *)&i, (const u8 *)(u64[]){ 1000, ~1000ull }, 0) == 0);
    transact_create(t, &lock, 0);
    lock_read(&lock, 0);
    /* As many as one core's pool has. */
    for (u64 i = 0; i < account_shape.capacity / THREADS; i++) {
        u64 start[2] = { 100, ~100ull };

        transact_begin(t);
        CHECK(transact_map_put(t, &accounts, &account_shape, &i, transact_map_token(&accounts, &account_shape, &i),
                               (const u8 *)start) > MR_RESTART);
        CHECK(transact_commit(t));
        transact_end(t);
    }
    lock_read_end(&lock, 0);
    while (transact_map_next(&accounts, &account_shape, &cursor, (u8 *)&key, (u8 *)value, 0) == 0)
        all += value[0];
    CHECK(all == 100 * account_shape.capacity / THREADS);
    for (u64 i = 0; i < THREADS; i++)
        CHECK(pthread_create(&thread[i], NULL, work, (void *)(uintptr_t)i) == 0);
    for (u32 i = 0; i < THREADS; i++)
        CHECK(pthread_join(thread[i], NULL) == 0);
    cursor = 0;
    while (transact_map_next(&accounts, &account_shape, &cursor, (u8 *)&key, (u8 *)value, 0) == 0) {
        sum += value[0];
        entries++;
        CHECK(value[0] == ~value[1] && value[0] > 0);
    }
    CHECK(sum == all);
    CHECK(entries <= ACCOUNTS);
    for (u32 i = 0; i < THREADS; i++) {
        CHECK(torn[i] == 0);
        a += aborts[i];
        w += alone[i];
        h += held[i];
        c += commits[i];
    }
    sum = 0;
    for (u64 i = 0; i < ACCOUNTS; i++) {
        CHECK(shared_vector_get(&elements, &element_shape, (const u8 *)&i, (u8 *)value, 0) == 0);
        CHECK(value[0] == ~value[1]);
        sum += value[0];
    }
    CHECK(sum == 1000 * ACCOUNTS);
    CHECK(c + w == (u64)THREADS * ROUNDS);
    CHECK(transact_map_full(&visitors) == refused[0] + refused[1] + refused[2] + refused[3]);
    printf("%llu commits, %llu aborts, %llu times words were held, %llu alone, %llu refused\n", (unsigned long long)c,
           (unsigned long long)a, (unsigned long long)h, (unsigned long long)w,
           (unsigned long long)transact_map_full(&visitors));
    free(t);
    transact_map_destroy(&accounts, &account_shape);
    transact_map_destroy(&visitors, &visitor_shape);
    shared_allocator_destroy(&numbers, &number_shape);
    shared_vector_destroy(&elements, &element_shape);
    lock_destroy(&lock);
    return check_report();
}
