/* Numbers that two workers (or WORKERS) lease of one allocator, where these are just enough for what is leased at a time, and where there are 4 % more
 * (Yan et al., EuroSys 2024, figure 8a): packets per processor time, in transactions and under the lock, in turns.
 *
 *   bench_leases [TURNS [MILLISECONDS]]
 *
 * One packet in eight ends an endpoint (frees its number) or begins one (leases), the others refresh one that there is. How many each
 * worker has goes up and down by itself within 4 % of its half, as flows fall to workers by chance; all together have 64,512 at most. */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "../state/shared_allocator.h"
#include "../sync/allocator.h"

#ifndef WORKERS
#define WORKERS 2
#endif

enum { LEASED = 64512, BURST = 32, MOST = LEASED / WORKERS + LEASED / WORKERS / 25 };

static struct lock lock;
static struct shared_allocator pools;
static struct allocator list;
static struct shape shape;

static struct worker {
    struct transact transact;
    struct undo undo;
    u64 number[MOST + 1]; /* of its endpoints, a ring */
    u64 first, count, random, packets, refused;
    double seconds;
    u32 core, transacts;
    const int *stop;
    pthread_barrier_t *ready;
} worker[WORKERS] __attribute__((aligned(128)));

static double seconds(void)
{
    struct timespec t;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

enum { REFRESH, LEASE, FREE };

/* One attempt, or the whole packet of who is alone; 0: again. */
MR_INLINE int attempt(struct worker *w, int what, u64 number, struct mr_packet *pkt, u64 *result)
{
    u64 value = 1;
    u8 *p;

    switch (what) {
    case LEASE:
        *result = shared_allocator_packet_allocator_lease(&pools, &shape, (const u8 *)&value, pkt);
        return *result != MR_RESTART_NUMBER;
    case FREE:
        *result = shared_allocator_packet_allocator_free(&pools, &shape, number, pkt);
        return *result != MR_RESTART_NUMBER;
    default:
        (void)w;
        p = shared_allocator_packet_allocator_refresh(&pools, &shape, number, pkt);
        return p != MR_RESTART;
    }
}

static u64 transacted(struct worker *w, int what, u64 number, struct mr_packet *pkt)
{
    struct transact *t = &w->transact;
    u64 result = 0;

    pkt->undo = t;
    t->time = pkt->time;
    transact_begin(t);
    if (mr_likely(attempt(w, what, number, pkt, &result) && transact_commit(t)))
        return result;
    do {
        transact_again(t);
        transact_begin(t);
    } while (!attempt(w, what, number, pkt, &result) || !transact_commit(t));
    transact_end(t);
    return result;
}

static u64 locked(struct worker *w, int what, u64 number, struct mr_packet *pkt)
{
    u64 value = 1, result = 0;

    undo_begin(&w->undo);
    pkt->undo = &w->undo;
    if (what == REFRESH && allocator_reader_allocator_refresh(&list, &shape, number, pkt) != MR_RESTART)
        return 0;
    undo_all(&w->undo);
    lock_read_to_write(&lock, w->core);
    if (what == LEASE)
        result = allocator_allocator_lease(&list, &shape, (const u8 *)&value, pkt);
    else if (what == FREE)
        result = allocator_allocator_free(&list, &shape, number, pkt);
    else
        allocator_allocator_refresh(&list, &shape, number, pkt);
    lock_write_to_read(&lock, w->core);
    return result;
}

static void packet(struct worker *w, u64 now)
{
    struct mr_packet pkt = { .time = now, .core = w->core };
    u64 draw = mr_random(w->random++, 11 + w->core), number = 0, result;
    u64 middle = LEASED / WORKERS, at = w->count ? (w->first + (draw >> 20) % w->count) % (MOST + 1) : 0;
    int what = REFRESH;

    if (draw % 8 == 0)
        /* A walk between what is 4 % below half of all and 4 % above. */
        what = w->count <= middle - middle / 25 ? LEASE : w->count >= MOST ? FREE : draw >> 8 & 1 ? LEASE : FREE;
    if (what != LEASE)
        number = w->number[what == FREE ? w->first : at];
    result = w->transacts ? transacted(w, what, number, &pkt) : locked(w, what, number, &pkt);
    if (what == LEASE && result == UINT64_MAX) {
        w->refused++;
    } else if (what == LEASE) {
        w->number[(w->first + w->count++) % (MOST + 1)] = result;
    } else if (what == FREE) {
        w->first = (w->first + 1) % (MOST + 1);
        w->count--;
    }
}

static void *work(void *context)
{
    struct worker *w = (struct worker *)context;
    cpu_set_t set;
    u64 now = 1000;

    CPU_ZERO(&set);
    CPU_SET(w->core % (u32)sysconf(_SC_NPROCESSORS_ONLN), &set);
    sched_setaffinity(0, sizeof set, &set);
    pthread_barrier_wait(w->ready);
    w->seconds = seconds();
    while (!__atomic_load_n(w->stop, __ATOMIC_RELAXED)) {
        lock_read(&lock, w->core);
        if (w->transacts)
            shared_allocator_settle(&w->transact, &pools, &shape, now);
        for (u32 i = 0; i < BURST; i++) {
            lock_read_again(&lock, w->core);
            packet(w, now++);
        }
        lock_read_end(&lock, w->core);
        w->packets += BURST;
    }
    w->seconds = seconds() - w->seconds;
    return NULL;
}

/* Million packets a second of both workers; `numbers` that there are. What ran alone, and what was refused, is added up. */
static double rate(u64 numbers, int transacts, u32 ms, u64 *alone, u64 *refused, u64 *packets)
{
    struct mr_config config = { .workers = WORKERS };
    pthread_t thread[WORKERS];
    pthread_barrier_t ready;
    struct timespec pause = { .tv_nsec = ms * 1000000l };
    double all = 0;
    int stop = 0;

    shape = (struct shape){ .key_bytes = 8, .value_bytes = 8, .capacity = numbers, .first = 1024, .expire_after = 1ull << 60,
                            .shared = 1, .numbered = transacts != 0 };
    lock_create(&lock, WORKERS);
    if (transacts ? shared_allocator_create(&pools, &shape, &config, NULL) : allocator_create(&list, &shape, &config, NULL))
        exit(1);
    pthread_barrier_init(&ready, NULL, WORKERS + 1);
    for (u32 c = 0; c < WORKERS; c++) {
        struct worker *w = &worker[c];

        memset(w, 0, sizeof *w);
        w->core = c;
        w->transacts = transacts != 0;
        w->stop = &stop;
        w->ready = &ready;
        transact_create(&w->transact, &lock, c);
        /* Full at the start, but for what the walk may take. */
        for (u64 i = 0; i < LEASED / WORKERS; i++) {
            struct mr_packet pkt = { .time = 1, .core = c };
            u64 value = 1;

            w->number[w->count++] =
                transacts ? shared_allocator_allocator_lease(&pools, &shape, (const u8 *)&value, &pkt) :
                            allocator_allocator_lease(&list, &shape, (const u8 *)&value, &pkt);
        }
    }
    for (u32 c = 0; c < WORKERS; c++)
        pthread_create(&thread[c], NULL, work, &worker[c]);
    pthread_barrier_wait(&ready);
    nanosleep(&pause, NULL);
    __atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
    for (u32 c = 0; c < WORKERS; c++) {
        pthread_join(thread[c], NULL);
        all += (double)worker[c].packets / worker[c].seconds / 1e6;
        *alone += worker[c].transact.count.alone;
        *refused += worker[c].refused;
        *packets += worker[c].packets;
    }
    pthread_barrier_destroy(&ready);
    if (transacts)
        shared_allocator_destroy(&pools, &shape);
    else
        allocator_destroy(&list, &shape);
    lock_destroy(&lock);
    return all;
}

static int by_number(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

int main(int count, char **words)
{
    u32 turns = count > 1 ? (u32)atoi(words[1]) : 21, ms = count > 2 ? (u32)atoi(words[2]) : 40;
    double *ratio = (double *)calloc(3 * turns, sizeof(double));
    u64 alone[3] = { 0 }, refused[3] = { 0 }, packets[3] = { 0 };
    static const char *const name[] = { "transact: 4 % more over just enough", "lock: 4 % more over just enough",
                                        "just enough: transact over lock" };
    const u64 more = LEASED + LEASED / 25;

    for (u32 t = 0; t < turns; t++) {
        double enough = rate(LEASED, 1, ms, &alone[0], &refused[0], &packets[0]);
        double spare = rate(more, 1, ms, &alone[1], &refused[1], &packets[1]);
        double lock_enough = rate(LEASED, 0, ms, &alone[2], &refused[2], &packets[2]);
        double lock_spare = rate(more, 0, ms, &alone[2], &refused[2], &packets[2]);

        ratio[t] = spare / enough;
        ratio[turns + t] = lock_spare / lock_enough;
        ratio[2 * turns + t] = enough / lock_enough;
    }
    printf("%u turns of %u ms, %ld processors, %d workers: median (quartiles)\n", turns, ms, sysconf(_SC_NPROCESSORS_ONLN), WORKERS);
    for (u32 i = 0; i < 3; i++) {
        double *of = &ratio[i * turns];

        qsort(of, turns, sizeof *of, by_number);
        printf("%-36s %.2f (%.2f to %.2f)\n", name[i], of[turns / 2], of[turns / 4], of[3 * turns / 4]);
    }
    for (u32 i = 0; i < 2; i++)
        printf("transact, %s: %.4f %% of packets ran alone, %.4f %% were refused\n", i ? "4 % more" : "just enough",
               100.0 * (double)alone[i] / (double)packets[i], 100.0 * (double)refused[i] / (double)packets[i]);
    free(ratio);
    return 0;
}
