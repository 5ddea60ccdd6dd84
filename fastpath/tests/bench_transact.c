/* The table of docs/transact.md (bench/transact.sh): packets of two workers (or WORKERS) that share 65,536 entries, over one worker that
 * shares nothing, for each way to share, and what a packet costs on one worker more than there: emitted modules over the same
 * packets. Ways take turns in one run, so that what else the machine does meets all alike; medians and quartiles of ratios of packets
 * per processor time. Each worker has a processor of its own if there is one.
 *
 *   bench_transact MODULE.so... [TURNS [MILLISECONDS]]
 *
 * Six modules: of bench/transact/entries.c and nfs/bridge the one of one worker, the one under the lock, and the one with
 * transactions. `N % write`: of every 100 packets N have the byte set at which the program adds to the entry. `bridge`: frames whose
 * source is known at their port, and whose destination is one of all. Making a packet is measured by itself and left out. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "../base.h"

#ifndef WORKERS
#define WORKERS 2
#endif

enum { ENTRIES = 65536, KEYS = 1 << 18, MOST_BURST = 32, FRAME = 64 };
enum way { NOTHING, PLAIN, SHARD, LOCK, TRANSACT, WAYS };
static const char *const way_name[] = { "nothing", "plain", "shard", "lock", "transact" };
enum program { WRITES, BRIDGE, PROGRAMS };

struct load {
    const char *name;
    enum program program;
    u32 writes; /* of 100 packets */
    double zipf;
    u32 burst;
};

static const struct load loads[] = {
    { "0 % write", WRITES, 0, 0, 32 },        { "1 % write", WRITES, 1, 0, 32 },
    { "10 % write", WRITES, 10, 0, 32 },     { "100 % write", WRITES, 100, 0, 32 },
    { "bridge", BRIDGE, 0, 0, 32 },          { "bridge, Zipf 1.1", BRIDGE, 0, 1.1, 32 },
    { "10 % write, bursts of 1", WRITES, 10, 0, 1 },
};

/* The modules of one load with their state, made once. */
static const struct mr_module *module_of[PROGRAMS][3];
static struct mr_instance *instance[WAYS][WORKERS];
static struct mr_shared *shared[WAYS];

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

static const struct mr_module *load(const char *path)
{
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    const struct mr_module *(*module)(void) =
        library ? (const struct mr_module *(*)(void))dlsym(library, "millrace_module") : NULL;

    if (!module || module()->abi != MR_ABI) {
        fprintf(stderr, "%s: no module of this release\n", path);
        exit(2);
    }
    return module();
}

/* An address of a station: unicast, and as a key of the map. */
static u64 station(u32 key) { return 2 | (u64)key << 16; }

#define NOW 1000000000000ull

static void fill(const struct load *l, const struct mr_module *module, struct mr_instance *of)
{
    const struct mr_object *object = &module->object[0];
    u8 value[16] = { 0 };

    for (u32 k = 0; k < ENTRIES; k++) {
        u64 key = l->program == BRIDGE ? station(k) : k;

        if (l->program == BRIDGE)
            value[0] = k & 1;
        else
            mr_store64(value + 8, 1ull << 60);
        if (object->set(of, (const u8 *)&key, value, NOW)) {
            fprintf(stderr, "%s: entry %u does not fit\n", l->name, k);
            exit(2);
        }
    }
}

static void make(const struct load *l)
{
    for (u32 way = SHARD; way < WAYS; way++) {
        const struct mr_module *module = module_of[l->program][way - SHARD];
        struct mr_config config = { .hash_seed = 1, .workers = way == SHARD ? 1 : WORKERS, .time = NOW };

        if (module->shared_bytes) {
            shared[way] = aligned_alloc(64, mr_round_up(module->shared_bytes, 64));
            memset(shared[way], 0, module->shared_bytes);
            if (module->create_shared(shared[way], &config))
                exit(2);
        }
        for (u32 w = 0; w < WORKERS; w++) {
            config.shared = shared[way];
            config.worker = way == SHARD ? 0 : w;
            instance[way][w] = aligned_alloc(128, mr_round_up(module->instance_bytes, 128));
            memset(instance[way][w], 0, module->instance_bytes);
            if (module->create(instance[way][w], &config))
                exit(2);
            if (way == SHARD || w == 0)
                fill(l, module, instance[way][w]);
        }
    }
}

static void unmake(const struct load *l)
{
    for (u32 way = SHARD; way < WAYS; way++) {
        const struct mr_module *module = module_of[l->program][way - SHARD];

        for (u32 w = 0; w < WORKERS; w++) {
            module->destroy(instance[way][w]);
            free(instance[way][w]);
        }
        if (shared[way]) {
            module->destroy_shared(shared[way]);
            free(shared[way]);
            shared[way] = NULL;
        }
    }
}

struct job {
    const struct load *load;
    enum way way;
    u32 worker;
    const int *stop;
    pthread_barrier_t *ready;
    u64 packets, forwarded;
    double seconds;
};

static void no_packets(struct mr_instance *self, struct mr_packet *const *packets, u32 n)
{
    __asm__ volatile("" : : "r"(self), "r"(packets), "r"(n) : "memory");
}

static void *work(void *context)
{
    static __thread u8 memory[MOST_BURST][256 + FRAME + 256] __attribute__((aligned(64)));
    struct job *job = (struct job *)context;
    const struct load *l = job->load;
    enum way way = job->way == PLAIN || job->way == NOTHING ? SHARD : job->way;
    const struct mr_module *module = module_of[l->program][way - SHARD];
    struct mr_instance *self = instance[way][job->worker];
    void (*run)(struct mr_instance *, struct mr_packet *const *, u32) = job->way == NOTHING ? no_packets : module->burst[0];
    struct mr_packet packet[MOST_BURST] = { 0 }, *burst[MOST_BURST];
    u32 at = job->worker * (KEYS / WORKERS) + 17 * (u32)draw();
    u64 packets = 0;
    cpu_set_t set;

    CPU_ZERO(&set);
    CPU_SET(job->worker % (u32)sysconf(_SC_NPROCESSORS_ONLN), &set);
    sched_setaffinity(0, sizeof set, &set);
    for (u32 i = 0; i < l->burst; i++) {
        u8 *data = memory[i] + 256;

        packet[i] = (struct mr_packet){ .data = data, .end = data + FRAME, .meta = data, .floor = memory[i],
                                        .ceiling = memory[i] + sizeof memory[i], .bared = data, .ports = 2,
                                        .cpu = job->worker };
        burst[i] = &packet[i];
    }
    pthread_barrier_wait(job->ready);
    job->seconds = seconds();
    /* Who is late has some bursts, too. */
    while (!__atomic_load_n(job->stop, __ATOMIC_RELAXED) || packets < 64 * l->burst) {
        for (u32 i = 0; i < l->burst; i++) {
            u8 *data = memory[i] + 256;
            u32 key = key_at[at++ % KEYS];

            packet[i].time = NOW + packets;
            if (l->program == BRIDGE) {
                u64 from = station(key), to = station(key_at[at++ % KEYS]);

                mr_store64(data, to);
                memcpy(data + 6, &from, 6);
                packet[i].port = key & 1;
            } else {
                mr_store64(data, key);
                data[8] = l->writes && (packets * 61 + i * 37) % 100 < l->writes;
            }
        }
        run(self, burst, l->burst);
        packets += l->burst;
        job->forwarded += packet[0].fate == MR_FORWARD;
    }
    job->seconds = seconds() - job->seconds;
    job->packets = packets;
    return NULL;
}

/* ns a packet of one worker, or the ns of all workers' packets as if one after the other were one worker's. */
static double cost(const struct load *l, enum way way, u32 workers, u32 ms, double nothing)
{
    struct job job[WORKERS];
    pthread_t thread[WORKERS];
    pthread_barrier_t ready;
    int stop = 0;
    double all = 0;
    u64 forwarded = 0;
    struct timespec pause = { .tv_nsec = ms * 1000000l };

    pthread_barrier_init(&ready, NULL, workers + 1);
    for (u32 w = 0; w < workers; w++) {
        job[w] = (struct job){ .load = l, .way = way, .worker = w, .stop = &stop, .ready = &ready };
        pthread_create(&thread[w], NULL, work, &job[w]);
    }
    pthread_barrier_wait(&ready);
    nanosleep(&pause, NULL);
    __atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
    for (u32 w = 0; w < workers; w++) {
        pthread_join(thread[w], NULL);
        all += 1 / (job[w].seconds * 1e9 / (double)job[w].packets - nothing);
        forwarded += job[w].forwarded;
    }
    pthread_barrier_destroy(&ready);
    if (way != NOTHING && forwarded == 0) {
        fprintf(stderr, "%s, %s: nothing was forwarded\n", l->name, way_name[way]);
        exit(2);
    }
    return 1 / all;
}

static int by_number(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static double median(double *of, u32 turns)
{
    qsort(of, turns, sizeof *of, by_number);
    return of[turns / 2];
}

int main(int count, char **words)
{
    const int modules = PROGRAMS * 3;
    u32 turns = count > modules + 1 ? (u32)atoi(words[modules + 1]) : 21;
    u32 ms = count > modules + 2 ? (u32)atoi(words[modules + 2]) : 30;
    double *ratio, *single, *plain, *nothing;

    if (count < modules + 1 || turns == 0) {
        fprintf(stderr, "usage: bench_transact MODULE.so... [TURNS [MILLISECONDS]], six modules\n");
        return 2;
    }
    for (int i = 0; i < modules; i++)
        module_of[i / 3][i % 3] = load(words[1 + i]);
    ratio = (double *)calloc((size_t)(2 * WAYS + 2) * turns, sizeof(double));
    single = ratio + WAYS * turns;
    plain = single + WAYS * turns;
    nothing = plain + turns;
    printf("%u turns of %u ms, %ld processors; %d workers over one that shares nothing: median (quartiles); ns a packet more "
           "on one worker\n", turns, ms, sysconf(_SC_NPROCESSORS_ONLN), WORKERS);
    for (u32 i = 0; i < sizeof loads / sizeof *loads; i++) {
        const struct load *l = &loads[i];

        keys(l->zipf);
        make(l);
        for (u32 t = 0; t < turns; t++) {
            nothing[t] = cost(l, NOTHING, 1, ms, 0);
            plain[t] = cost(l, PLAIN, 1, ms, nothing[t]);
            for (u32 w = SHARD; w < WAYS; w++) {
                ratio[w * turns + t] = plain[t] / cost(l, (enum way)w, WORKERS, ms, nothing[t]);
                single[w * turns + t] = cost(l, (enum way)w, 1, ms, nothing[t]) - plain[t];
            }
        }
        printf("%-24s plain %.1f ns, making a packet %.1f", l->name, median(plain, turns), median(nothing, turns));
        for (u32 w = SHARD; w < WAYS; w++) {
            double *two = &ratio[w * turns], *more = &single[w * turns];

            qsort(two, turns, sizeof *two, by_number);
            qsort(more, turns, sizeof *more, by_number);
            printf("; %s %.2f (%.2f to %.2f), %+.1f ns", way_name[w], two[turns / 2], two[turns / 4], two[3 * turns / 4],
                   more[turns / 2]);
        }
        printf("\n");
        fflush(stdout);
        unmake(l);
    }
    free(ratio);
    return 0;
}
