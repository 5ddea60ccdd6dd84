/* The table of docs/transact.md: packets of two workers (or WORKERS) that share 65,536 entries, over one worker that shares nothing, for each
 * way to share; and what a reading and a writing packet cost on one worker. Ways take turns in one run, so that what else the
 * machine does meets all alike; medians and quartiles of ratios of packets per processor time. Each worker has a processor of its own if there is one.
 *
 *   bench_transact [TURNS [MILLISECONDS]]
 *
 * A packet is what an emitted program makes of one: bursts of 32 in three passes (token, entry, packet). `N % write`: it looks up one
 * of 65,536 keys, and of every 100 packets N add to its value. `bridge`: it refreshes one entry and reads another. */
#define _GNU_SOURCE
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "../state/shared_hash.h"
#include "../sync/hash.h"

#ifndef WORKERS
#define WORKERS 2
#endif

enum { ENTRIES = 65536, KEYS = 1 << 18, MOST_BURST = 32 };
enum way { PLAIN, SHARD, LOCK, TRANSACT, WAYS };
static const char *const way_name[] = { "plain", "shard", "lock", "transact" };

struct load {
    const char *name;
    u32 writes; /* of 100 packets */
    u32 bridge;
    double zipf;
    u32 burst;
};

static const struct load loads[] = {
    { "0 % write", 0, 0, 0, 32 },  { "1 % write", 1, 0, 0, 32 },    { "10 % write", 10, 0, 0, 32 },
    { "100 % write", 100, 0, 0, 32 }, { "bridge", 0, 1, 0, 32 }, { "bridge, Zipf 1.1", 0, 1, 1.1, 32 },
    { "10 % write, bursts of 1", 10, 0, 0, 1 },
};

static const struct shape table = { .key_bytes = 8, .value_bytes = 16, .capacity = ENTRIES };
static const struct shape table_shared = { .key_bytes = 8, .value_bytes = 16, .capacity = ENTRIES, .shared = 1 };
static const struct shape stations = { .key_bytes = 8, .value_bytes = 8, .capacity = ENTRIES, .expire_after = 120000000000ull };
static const struct shape stations_shared = { .key_bytes = 8, .value_bytes = 8, .capacity = ENTRIES,
                                              .expire_after = 120000000000ull, .shared = 1 };

struct instance {
    struct hash *hash;
    struct shared_hash *map;
    struct lock *lock;
    u32 core;
    struct undo undo;
    struct transact transact;
} __attribute__((aligned(128)));

static u32 key_at[KEYS]; /* the keys of packets, drawn before */

/* Of this thread: what other programs have of the processor is not counted. */
static double seconds(void)
{
    struct timespec t;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static u64 random_state = 1;

static u64 draw(void) { return mr_random(random_state++, 7); }

static void keys(double zipf)
{
    static double sum[ENTRIES];
    double all = 0;

    for (u32 i = 0; i < ENTRIES; i++)
        sum[i] = all += 1 / pow(i + 1, zipf);
    for (u32 i = 0; i < KEYS; i++) {
        double at = (double)(draw() >> 11) / (double)(1ull << 53) * all;
        u32 low = 0, high = ENTRIES - 1;

        while (low < high) {
            u32 middle = (low + high) / 2;

            if (sum[middle] < at)
                low = middle + 1;
            else
                high = middle;
        }
        /* Popular keys lie anywhere. */
        key_at[i] = (u32)((u64)low * 40503u % ENTRIES);
    }
}

/* One packet: keys a and b; what it found. `me` says how. The functions of a way differ in nothing else. */
#define PACKET(name, find, refresh, store_to)                                                                          \
    MR_INLINE int name(struct instance *me, const struct shape *s, struct mr_packet *pkt, u64 a, u64 ta, u64 b, u64 tb, \
                       int writes, int bridge, u64 *seen)                                                              \
    {                                                                                                                  \
        u8 *p;                                                                                                         \
                                                                                                                       \
        if (bridge) {                                                                                                  \
            p = refresh(me, s, &a, ta, pkt);                                                                           \
            if (mr_unlikely(p == MR_RESTART))                                                                          \
                return 0;                                                                                              \
            *seen += p ? *p : 0;                                                                                       \
            p = find(me, s, &b, tb, pkt);                                                                              \
            if (mr_unlikely(p == MR_RESTART))                                                                          \
                return 0;                                                                                              \
            *seen += p ? *p : 0;                                                                                       \
            return 1;                                                                                                  \
        }                                                                                                              \
        if (writes) {                                                                                                  \
            p = store_to(me, s, &a, ta, pkt);                                                                          \
            if (mr_unlikely(p == MR_RESTART))                                                                          \
                return 0;                                                                                              \
            if (p)                                                                                                     \
                mr_store64(p, mr_load64(p) + 1);                                                                       \
            return 1;                                                                                                  \
        }                                                                                                              \
        p = find(me, s, &a, ta, pkt);                                                                                  \
        if (mr_unlikely(p == MR_RESTART))                                                                              \
            return 0;                                                                                                  \
        *seen += p ? *p : 0;                                                                                           \
        return 1;                                                                                                      \
    }

#define OWN(me, s, k, t, pkt) hash_map_get((me)->hash, s, k, t, pkt)
#define OWN_REFRESH(me, s, k, t, pkt) hash_map_refresh((me)->hash, s, k, t, pkt)
#define READER(me, s, k, t, pkt) hash_reader_map_get((me)->hash, s, k, t, pkt)
#define READER_REFRESH(me, s, k, t, pkt) hash_reader_map_refresh((me)->hash, s, k, t, pkt)
#define WRITER(me, s, k, t, pkt) MR_RESTART
#define BESIDE(me, s, k, t, pkt) shared_hash_packet_map_get((me)->map, s, k, t, pkt)
#define BESIDE_REFRESH(me, s, k, t, pkt) shared_hash_packet_map_refresh((me)->map, s, k, t, pkt)
#define BESIDE_STORE(me, s, k, t, pkt) shared_hash_copied_map_get((me)->map, s, k, t, pkt)
PACKET(packet_own, OWN, OWN_REFRESH, OWN)
PACKET(packet_reader, READER, READER_REFRESH, WRITER)
PACKET(packet_beside, BESIDE, BESIDE_REFRESH, BESIDE_STORE)

MR_OUTLINE void locked(struct instance *me, const struct shape *s, struct mr_packet *pkt, u64 a, u64 ta, u64 b, u64 tb,
                       int writes, int bridge, u64 *seen)
{
    undo_all(&me->undo);
    lock_read_to_write(me->lock, me->core);
    packet_own(me, s, pkt, a, ta, b, tb, writes, bridge, seen);
    lock_write_to_read(me->lock, me->core);
}

MR_OUTLINE void again(struct instance *me, const struct shape *s, struct mr_packet *pkt, u64 a, u64 ta, u64 b, u64 tb,
                      int writes, int bridge, u64 *seen)
{
    struct transact *t = &me->transact;

    do {
        transact_again(t);
        if (t->alone)
            break;
        transact_begin(t);
    } while (!packet_beside(me, s, pkt, a, ta, b, tb, writes, bridge, seen) || !transact_commit(t));
    if (t->alone)
        packet_beside(me, s, pkt, a, ta, b, tb, writes, bridge, seen);
    transact_end(t);
}

MR_INLINE void one(struct instance *me, const struct shape *s, enum way way, struct mr_packet *pkt, u64 a, u64 ta, u64 b,
                   u64 tb, int writes, int bridge, u64 *seen)
{
    if (way == PLAIN || way == SHARD) {
        packet_own(me, s, pkt, a, ta, b, tb, writes, bridge, seen);
    } else if (way == LOCK) {
        lock_read_again(me->lock, me->core);
        pkt->core = me->core;
        undo_begin(&me->undo);
        pkt->undo = &me->undo;
        if (mr_unlikely(!packet_reader(me, s, pkt, a, ta, b, tb, writes, bridge, seen)))
            locked(me, s, pkt, a, ta, b, tb, writes, bridge, seen);
    } else {
        struct transact *t = &me->transact;

        lock_read_again(me->lock, me->core);
        pkt->core = me->core;
        pkt->undo = t;
        t->time = pkt->time;
        transact_begin(t);
        if (mr_unlikely(!packet_beside(me, s, pkt, a, ta, b, tb, writes, bridge, seen) || !transact_commit(t)))
            again(me, s, pkt, a, ta, b, tb, writes, bridge, seen);
    }
}

/* Bursts from the keys at `at` on, for a while; packets, and where it has got to. */
MR_INLINE u64 run(struct instance *me, const struct shape *s, enum way way, u32 writes, int bridge, u32 burst, u32 at,
                  const int *stop)
{
    u64 packets = 0, seen = 0;

    while (!__atomic_load_n(stop, __ATOMIC_RELAXED)) {
        u64 a[MOST_BURST], b[MOST_BURST], ta[MOST_BURST], tb[MOST_BURST];
        struct mr_packet pkt = { .time = 1000 + packets };

        if (way == LOCK || way == TRANSACT)
            lock_read(me->lock, me->core);
        for (u32 i = 0; i < burst; i++) {
            a[i] = key_at[at++ % KEYS];
            b[i] = bridge ? key_at[at++ % KEYS] : 0;
            if (way == TRANSACT) {
                ta[i] = shared_hash_token(me->map, s, &a[i]);
                tb[i] = bridge ? shared_hash_token(me->map, s, &b[i]) : 0;
                shared_hash_prefetch(me->map, s, ta[i]);
                if (bridge)
                    shared_hash_prefetch(me->map, s, tb[i]);
            } else {
                ta[i] = hash_token(me->hash, s, &a[i]);
                tb[i] = bridge ? hash_token(me->hash, s, &b[i]) : 0;
                hash_prefetch(me->hash, s, ta[i]);
                if (bridge)
                    hash_prefetch(me->hash, s, tb[i]);
            }
        }
        for (u32 i = 0; i < burst; i++) {
            if (way == TRANSACT) {
                ta[i] = shared_hash_prefetch_entry_of(me->map, s, ta[i], me->core);
                if (bridge)
                    tb[i] = shared_hash_prefetch_entry_of(me->map, s, tb[i], me->core);
            } else {
                ta[i] = hash_prefetch_entry(me->hash, s, ta[i]);
                if (bridge)
                    tb[i] = hash_prefetch_entry(me->hash, s, tb[i]);
            }
        }
        for (u32 i = 0; i < burst; i++) {
            int writing = writes && (packets * 61 + i * 37) % 100 < writes;

            one(me, s, way, &pkt, a[i], ta[i], b[i], tb[i], writing, bridge, &seen);
        }
        packets += burst;
        if (way == TRANSACT)
            transact_counted(&me->transact, burst);
        if (way == LOCK || way == TRANSACT)
            lock_read_end(me->lock, me->core);
    }
    *(volatile u64 *)&me->undo.store[0].old = seen;
    return packets;
}

struct job {
    struct instance *me;
    const struct load *load;
    enum way way;
    u32 worker, workers;
    const int *stop;
    pthread_barrier_t *ready;
    u64 packets;
    double seconds;
};

#define RUN(w) case w: job->packets = l->bridge ? \
    (w == LOCK || w == TRANSACT ? run(me, &stations_shared, w, 0, 1, l->burst, at, job->stop) : run(me, &stations, w, 0, 1, l->burst, at, job->stop)) : \
    (w == LOCK || w == TRANSACT ? run(me, &table_shared, w, l->writes, 0, l->burst, at, job->stop) : run(me, &table, w, l->writes, 0, l->burst, at, job->stop)); break;

static void *work(void *context)
{
    struct job *job = (struct job *)context;
    struct instance *me = job->me;
    const struct load *l = job->load;
    u32 at = job->worker * (KEYS / WORKERS) + 17 * (u32)draw();
    cpu_set_t set;

    CPU_ZERO(&set);
    CPU_SET(job->worker % (u32)sysconf(_SC_NPROCESSORS_ONLN), &set);
    sched_setaffinity(0, sizeof set, &set);
    pthread_barrier_wait(job->ready);
    job->seconds = seconds();
    switch (job->way) {
        RUN(PLAIN)
        RUN(SHARD)
        RUN(LOCK)
        RUN(TRANSACT)
    default:
        break;
    }
    job->seconds = seconds() - job->seconds;
    return NULL;
}

static struct hash own[WORKERS], common_hash;
static struct shared_hash common_map;
static struct lock lock_of_hash, lock_of_map;
static struct instance instance[WORKERS];

/* Million packets a second of all workers together. */
static double rate(const struct load *load, enum way way, u32 workers, u32 ms)
{
    struct job job[WORKERS];
    pthread_t thread[WORKERS];
    pthread_barrier_t ready;
    int stop = 0;
    double all = 0;
    struct timespec pause = { .tv_nsec = ms * 1000000l };

    pthread_barrier_init(&ready, NULL, workers + 1);
    for (u32 w = 0; w < workers; w++) {
        struct instance *me = &instance[w];

        me->hash = way == LOCK ? &common_hash : &own[w];
        me->map = &common_map;
        me->lock = way == LOCK ? &lock_of_hash : &lock_of_map;
        me->core = w;
        job[w] = (struct job){ .me = me, .load = load, .way = way, .worker = w, .workers = workers, .stop = &stop, .ready = &ready };
        pthread_create(&thread[w], NULL, work, &job[w]);
    }
    pthread_barrier_wait(&ready);
    nanosleep(&pause, NULL);
    __atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
    for (u32 w = 0; w < workers; w++) {
        pthread_join(thread[w], NULL);
        all += (double)job[w].packets / job[w].seconds / 1e6;
    }
    pthread_barrier_destroy(&ready);
    return all;
}

static void make(const struct shape *s, const struct shape *shared)
{
    struct mr_config config = { .hash_seed = 0x1234, .workers = WORKERS };
    struct mr_packet pkt = { .time = 1000 };
    u8 value[16] = { 1 };

    lock_create(&lock_of_hash, WORKERS);
    lock_create(&lock_of_map, WORKERS);
    hash_create(&common_hash, shared, &config, NULL);
    shared_hash_create(&common_map, shared, &config, NULL);
    for (u32 w = 0; w < WORKERS; w++) {
        hash_create(&own[w], s, &config, NULL);
        transact_create(&instance[w].transact, &lock_of_map, w);
    }
    for (u64 k = 0; k < ENTRIES; k++) {
        for (u32 w = 0; w < WORKERS; w++)
            hash_map_put(&own[w], s, &k, hash_token(&own[w], s, &k), value, &pkt);
        hash_map_put(&common_hash, shared, &k, hash_token(&common_hash, shared, &k), value, &pkt);
        pkt.core = (u32)(k % WORKERS);
        shared_hash_map_put(&common_map, shared, &k, shared_hash_token(&common_map, shared, &k), value, &pkt);
    }
}

static void unmake(const struct shape *s, const struct shape *shared)
{
    for (u32 w = 0; w < WORKERS; w++)
        hash_destroy(&own[w], s);
    hash_destroy(&common_hash, shared);
    shared_hash_destroy(&common_map, shared);
    lock_destroy(&lock_of_hash);
    lock_destroy(&lock_of_map);
}

static int by_number(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

int main(int count, char **words)
{
    u32 turns = count > 1 ? (u32)atoi(words[1]) : 21, ms = count > 2 ? (u32)atoi(words[2]) : 30;
    double *ratio = (double *)calloc((size_t)WAYS * 3 * turns, sizeof(double));

    printf("%u turns of %u ms, %ld processors; %d workers over one that shares nothing: median (quartiles); ns a packet more "
           "on one worker\n", turns, ms, sysconf(_SC_NPROCESSORS_ONLN), WORKERS);
    for (u32 l = 0; l < sizeof loads / sizeof *loads; l++) {
        const struct shape *s = loads[l].bridge ? &stations : &table, *shared = loads[l].bridge ? &stations_shared : &table_shared;
        double plain_ns = 0;

        keys(loads[l].zipf);
        make(s, shared);
        for (u32 t = 0; t < turns; t++) {
            double plain = rate(&loads[l], PLAIN, 1, ms);

            plain_ns += 1e3 / plain / turns;
            for (u32 w = SHARD; w < WAYS; w++) {
                ratio[(w * 3 + 0) * turns + t] = rate(&loads[l], (enum way)w, WORKERS, ms) / plain;
                ratio[(w * 3 + 1) * turns + t] = 1e3 / rate(&loads[l], (enum way)w, 1, ms) - 1e3 / plain;
            }
        }
        printf("%-24s plain %.1f ns", loads[l].name, plain_ns);
        for (u32 w = SHARD; w < WAYS; w++) {
            double *two = &ratio[w * 3 * turns], *more = two + turns;

            qsort(two, turns, sizeof *two, by_number);
            qsort(more, turns, sizeof *more, by_number);
            printf("; %s %.2f (%.2f to %.2f), %+.1f ns", way_name[w], two[turns / 2], two[turns / 4], two[3 * turns / 4],
                   more[turns / 2]);
        }
        printf("\n");
        fflush(stdout);
        unmake(s, shared);
    }
    free(ratio);
    return 0;
}
