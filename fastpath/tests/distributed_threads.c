/* distributed_threads: threads that change and read parts of numbers, for orders of memory (ThreadSanitizer). Two members are
 * changed alike by each packet, so that a read of half of one shows. */
#include <pthread.h>
#include <sched.h>

static void switch_threads(void);
#define MR_POINT() switch_threads()
#include "../state/distributed.h"
#include "check.h"

#define THREADS 4u
#define ROUNDS 20000u

static __thread u64 yields, yield_seed;

static void switch_threads(void)
{
    if (mr_random(yield_seed, yields++) % 256 == 0)
        sched_yield();
}

static const struct shape shape = { .key_bytes = 4, .value_bytes = 24, .capacity = 1, .staleness = 3, .max = 4 };
static struct parts parts;
static struct distributed cores[THREADS];
static u64 torn[THREADS], back[THREADS], seen[THREADS];

static void *work(void *argument)
{
    u32 w = (u32)(uintptr_t)argument;
    struct distributed *d = &cores[w];
    u64 last = 0, highest = 0;

    yield_seed = w + 1;
    for (u64 i = 0; i < ROUNDS; i++) {
        struct mr_packet pkt = { .time = i, .number = i };
        u64 a, b, most;

        distributed_distributed_add(d, &shape, 0, 1, &pkt);
        distributed_distributed_max(d, &shape, 2, i, &pkt);
        a = distributed_distributed_read(d, &shape, 0, &pkt);
        b = distributed_distributed_read(d, &shape, 1, &pkt);
        most = distributed_distributed_read(d, &shape, 2, &pkt);
        distributed_distributed_add(d, &shape, 1, 1, &pkt);
        /* Its own half of this packet it sees. */
        torn[w] += a != b + 1;
        back[w] += a < last || most < highest || most < i;
        last = a;
        highest = most;
        if (i % 8 == 7)
            distributed_publish(d, &shape);
    }
    distributed_publish(d, &shape);
    seen[w] = last;
    return NULL;
}

int main(void)
{
    struct mr_config config = check_config;
    pthread_t threads[THREADS];
    struct mr_packet pkt = { .time = 10 * ROUNDS };

    config.workers = THREADS;
    CHECK(parts_create(&parts, &shape, &config) == 0);
    for (u32 w = 0; w < THREADS; w++)
        CHECK(distributed_create(&cores[w], &shape, &config, NULL) == 0 &&
              distributed_join(&cores[w], &shape, &parts, w) == 0);
    for (u32 w = 0; w < THREADS; w++)
        CHECK(pthread_create(&threads[w], NULL, work, (void *)(uintptr_t)w) == 0);
    for (u32 w = 0; w < THREADS; w++)
        CHECK(pthread_join(threads[w], NULL) == 0);
    for (u32 w = 0; w < THREADS; w++) {
        CHECK(torn[w] == 0 && back[w] == 0 && seen[w] >= ROUNDS);
        CHECK(distributed_distributed_read(&cores[w], &shape, 0, &pkt) == (u64)THREADS * ROUNDS);
        CHECK(distributed_distributed_read(&cores[w], &shape, 2, &pkt) == ROUNDS - 1);
    }
    for (u32 w = 0; w < THREADS; w++)
        distributed_destroy(&cores[w], &shape);
    parts_destroy(&parts, &shape);
    return check_report();
}
