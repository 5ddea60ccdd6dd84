/* Two emitted modules of one function beside each other (bench/distributed.sh): antiddos with its numbers in one copy, under the lock, and
 * in parts. Each worker has flows of its own, of which four in five packets open a new one, and a processor of its own if there is one;
 * bursts of 32, in the packets' own time. Ways take turns; medians and quartiles.
 *
 *   bench_distributed ONE_COPY.so PARTS.so [TURNS [MILLISECONDS]]
 *
 * Packets per processor time of all workers, and of one worker; ratios of both modules in one turn. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <dlfcn.h>
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

enum { BURST = 32, FRAME = 64, OLD = 512, WAYS = 2 };

struct worker {
    const struct mr_module *module;
    struct mr_instance *instance;
    struct mr_shared *shared;
    u32 worker;
    const int *stop;
    pthread_barrier_t *ready;
    u64 packets, forwarded;
    double seconds;
};

static double clock_of(clockid_t id)
{
    struct timespec t;

    clock_gettime(id, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* A UDP packet of a flow. */
static void frame(u8 *p, u32 source, u16 port)
{
    u32 sum = 0;
    static const u8 head[] = { 2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0, 0x45, 0, 0, 50, 0, 0, 0, 0, 64, 17, 0, 0 };

    memset(p, 0, FRAME);
    memcpy(p, head, sizeof head);
    source = htonl(source);
    memcpy(p + 26, &source, 4);
    memcpy(p + 30, "\xc0\x00\x02\x01", 4);
    port = htons(port);
    memcpy(p + 34, &port, 2);
    memcpy(p + 36, "\x00\x35\x00\x1e", 4);
    for (u32 i = 14; i < 34; i += 2)
        sum += (u32)(p[i] << 8 | p[i + 1]);
    sum = (sum & 0xffff) + (sum >> 16);
    sum = ~((sum & 0xffff) + (sum >> 16));
    p[24] = (u8)(sum >> 8);
    p[25] = (u8)sum;
}

static void *work(void *context)
{
    struct worker *w = (struct worker *)context;
    static __thread u8 memory[BURST][256 + FRAME + 256];
    struct mr_packet packet[BURST];
    struct mr_packet *burst[BURST];
    u64 state = w->worker + 1, fresh = 0, number = w->worker;
    cpu_set_t set;

    CPU_ZERO(&set);
    CPU_SET(w->worker % (u32)sysconf(_SC_NPROCESSORS_ONLN), &set);
    sched_setaffinity(0, sizeof set, &set);
    pthread_barrier_wait(w->ready);
    w->seconds = clock_of(CLOCK_THREAD_CPUTIME_ID);
    while (!__atomic_load_n(w->stop, __ATOMIC_RELAXED)) {
        u64 now = (u64)(clock_of(CLOCK_MONOTONIC) * 1e9);

        for (u32 i = 0; i < BURST; i++) {
            u64 draw = mr_random(7, state++);
            u8 *data = memory[i] + 256;
            /* Each worker's sources are its own, as a NIC steers them. */
            u32 source = (w->worker + 1) << 24 | (draw % 5 ? (u32)(++fresh & 0x7fffff) | 0x800000 : (u32)(draw >> 8) % OLD);

            frame(data, source, (u16)(draw % 5 ? 1000 + (fresh >> 23) : 53));
            packet[i] = (struct mr_packet){ .data = data, .end = data + FRAME, .meta = data, .floor = memory[i],
                                            .ceiling = memory[i] + sizeof memory[i], .bared = data, .time = now,
                                            .number = number, .ports = 2, .cpu = w->worker };
            number += WORKERS;
            burst[i] = &packet[i];
        }
        w->module->burst[0](w->instance, burst, BURST);
        w->packets += BURST;
        for (u32 i = 0; i < BURST; i++)
            w->forwarded += packet[i].fate == MR_FORWARD;
    }
    w->seconds = clock_of(CLOCK_THREAD_CPUTIME_ID) - w->seconds;
    return NULL;
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

/* Million packets a second of processor time. */
static double rate(const struct mr_module *module, u32 workers, u32 ms)
{
    struct worker w[WORKERS];
    pthread_t thread[WORKERS];
    pthread_barrier_t ready;
    struct timespec pause = { .tv_nsec = ms * 1000000l };
    struct mr_config config = { .hash_seed = 1, .workers = workers, .time = (u64)(clock_of(CLOCK_MONOTONIC) * 1e9) };
    struct mr_shared *shared = NULL;
    double all = 0;
    u64 forwarded = 0, packets = 0;
    int stop = 0;

    if (module->shared_bytes) {
        shared = aligned_alloc(64, mr_round_up(module->shared_bytes, 64));
        memset(shared, 0, module->shared_bytes);
        if (module->create_shared(shared, &config))
            exit(2);
    }
    pthread_barrier_init(&ready, NULL, workers + 1);
    for (u32 i = 0; i < workers; i++) {
        config.shared = shared;
        config.worker = i;
        w[i] = (struct worker){ .module = module, .worker = i, .stop = &stop, .ready = &ready };
        w[i].instance = aligned_alloc(64, mr_round_up(module->instance_bytes, 64));
        memset(w[i].instance, 0, module->instance_bytes);
        if (module->create(w[i].instance, &config))
            exit(2);
        pthread_create(&thread[i], NULL, work, &w[i]);
    }
    pthread_barrier_wait(&ready);
    nanosleep(&pause, NULL);
    __atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
    for (u32 i = 0; i < workers; i++) {
        pthread_join(thread[i], NULL);
        all += (double)w[i].packets / w[i].seconds / 1e6;
        packets += w[i].packets;
        forwarded += w[i].forwarded;
        module->destroy(w[i].instance);
        free(w[i].instance);
    }
    if (shared) {
        module->destroy_shared(shared);
        free(shared);
    }
    pthread_barrier_destroy(&ready);
    if (forwarded * 10 < packets * 9)
        fprintf(stderr, "only %llu of %llu packets were forwarded\n", (unsigned long long)forwarded, (unsigned long long)packets);
    return all;
}

static int by_number(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static void say(const char *what, double *of, u32 turns)
{
    qsort(of, turns, sizeof *of, by_number);
    printf("%-44s %.2f (%.2f to %.2f)\n", what, of[turns / 2], of[turns / 4], of[3 * turns / 4]);
}

int main(int count, char **words)
{
    const struct mr_module *way[WAYS];
    u32 turns = count > 3 ? (u32)atoi(words[3]) : 21, ms = count > 4 ? (u32)atoi(words[4]) : 40;
    double *one, *two, *scale, *copy;

    if (count < 3) {
        fprintf(stderr, "usage: bench_distributed ONE_COPY.so PARTS.so [TURNS [MILLISECONDS]]\n");
        return 2;
    }
    way[0] = load(words[1]);
    way[1] = load(words[2]);
    one = calloc(4 * turns, sizeof *one);
    two = one + turns;
    scale = two + turns;
    copy = scale + turns;
    for (u32 t = 0; t < turns; t++) {
        double single[WAYS], both[WAYS];

        for (u32 w = 0; w < WAYS; w++) {
            single[w] = rate(way[w], 1, ms);
            both[w] = rate(way[w], WORKERS, ms);
        }
        one[t] = single[1] / single[0];
        two[t] = both[1] / both[0];
        scale[t] = both[1] / single[1];
        copy[t] = both[0] / single[0];
    }
    printf("%u turns of %u ms, %ld processors, %d workers: median (quartiles)\n", turns, ms, sysconf(_SC_NPROCESSORS_ONLN), WORKERS);
    say("parts over one copy, all workers", two, turns);
    say("parts over one copy, one worker", one, turns);
    say("all workers over one, parts", scale, turns);
    say("all workers over one, one copy", copy, turns);
    free(one);
    return 0;
}
