/* What hosting is compared with: a function in a process of its own, which packets reach and leave by rings in shared
 * memory. `rings HOW FUNCTIONS BURSTS TURNS`, HOW one of
 *
 *   yield  all on one processor; whoever finds its ring empty yields (sched_yield)
 *   futex  the same, but it sleeps, and is woken by who fills the ring
 *   spin   the source on one processor, the function on another, both spinning, eight bursts under way
 *
 * Prints for each turn the cycles of the time stamp counter a packet, burst of 32, there and back: the median over the
 * bursts on one processor, the mean on two, where bursts overlap. A ring has one writer and one reader. Each keeps what
 * it knows of the other's index, looks again only when that is used up, and publishes its own once a burst.
 */
#define _GNU_SOURCE
#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <x86intrin.h>

enum { BURST = 32, SLOTS = 1024, BUFFERS = 512, UNDER_WAY = 8, MOST = 8, SECONDS = 20 };
enum how { YIELD, FUTEX, SPIN };

struct descriptor {
    uint8_t *data;
    uint32_t length;
    uint32_t port;
};

struct ring {
    _Alignas(64) _Atomic uint32_t head; /* written by who fills it; a futex */
    uint32_t tail_seen;
    _Alignas(64) _Atomic uint32_t tail; /* written by who empties it */
    uint32_t head_seen;
    _Alignas(64) _Atomic uint32_t asleep; /* whoever empties it waits for the futex */
    _Alignas(64) struct descriptor slot[SLOTS];
};

static enum how how;

static uint32_t put(struct ring *ring, const struct descriptor *from, uint32_t count)
{
    uint32_t head = atomic_load_explicit(&ring->head, memory_order_relaxed);

    if (SLOTS - (head - ring->tail_seen) < count) {
        ring->tail_seen = atomic_load_explicit(&ring->tail, memory_order_acquire);
        if (SLOTS - (head - ring->tail_seen) < count)
            return 0;
    }
    for (uint32_t i = 0; i < count; i++)
        ring->slot[(head + i) % SLOTS] = from[i];
    if (how != FUTEX) {
        atomic_store_explicit(&ring->head, head + count, memory_order_release);
        return count;
    }
    /* In order with the sleeper's, which says that it sleeps and then looks. */
    atomic_store(&ring->head, head + count);
    if (atomic_load(&ring->asleep))
        syscall(SYS_futex, &ring->head, FUTEX_WAKE, 1, NULL, NULL, 0);
    return count;
}

static uint32_t take(struct ring *ring, struct descriptor *to)
{
    uint32_t tail = atomic_load_explicit(&ring->tail, memory_order_relaxed);

    if (ring->head_seen == tail) {
        ring->head_seen = atomic_load_explicit(&ring->head, memory_order_acquire);
        if (ring->head_seen == tail)
            return 0;
    }
    uint32_t count = ring->head_seen - tail < BURST ? ring->head_seen - tail : BURST;
    for (uint32_t i = 0; i < count; i++)
        to[i] = ring->slot[(tail + i) % SLOTS];
    atomic_store_explicit(&ring->tail, tail + count, memory_order_release);
    return count;
}

static void await(struct ring *ring)
{
    uint32_t seen = ring->head_seen;

    switch (how) {
    case YIELD:
        sched_yield();
        break;
    case FUTEX:
        atomic_store(&ring->asleep, 1);
        if (atomic_load(&ring->head) == seen) {
            struct timespec most = {.tv_sec = 1};
            syscall(SYS_futex, &ring->head, FUTEX_WAIT, seen, &most, NULL, 0);
        }
        atomic_store(&ring->asleep, 0);
        break;
    case SPIN:
        _mm_pause();
        break;
    }
}

static void pin(int processor)
{
    cpu_set_t set;

    CPU_ZERO(&set);
    CPU_SET(processor, &set);
    if (sched_setaffinity(0, sizeof set, &set)) {
        perror("sched_setaffinity");
        exit(1);
    }
}

/* The function: looks at each packet's first byte, as the hosted one does (crates/guest/tests/programs/trivial.c). */
static void serve(struct ring *from, struct ring *to)
{
    static volatile uint64_t sum;
    struct descriptor burst[BURST];

    for (;;) {
        uint32_t count = take(from, burst);

        if (!count) {
            await(from);
            continue;
        }
        for (uint32_t i = 0; i < count; i++)
            sum += burst[i].data[0];
        while (!put(to, burst, count))
            await(to);
    }
}

static int compare(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return (x > y) - (x < y);
}

/* One burst there and back after the other. */
static double one_by_one(struct ring *first, struct ring *last, struct descriptor *bursts, unsigned long rounds,
                         uint64_t *took)
{
    struct descriptor back[BURST];

    for (unsigned long round = 0; round < rounds; round++) {
        uint64_t begin = __rdtsc();

        put(first, bursts, BURST);
        for (uint32_t got = 0, count; got < BURST; got += count)
            if (!(count = take(last, back)))
                await(last);
        took[round] = __rdtsc() - begin;
    }
    qsort(took, rounds, sizeof *took, compare);
    return (double)took[rounds / 2] / BURST;
}

/* Several under way. */
static double overlapping(struct ring *first, struct ring *last, struct descriptor *bursts, unsigned long rounds)
{
    struct descriptor back[BURST];
    unsigned long sent = 0, got = 0, all = rounds * BURST;
    uint64_t begin = __rdtsc();

    while (got < all) {
        if (sent < all && sent - got <= (UNDER_WAY - 1) * BURST)
            sent += put(first, bursts + sent % BUFFERS, BURST);
        uint32_t count = take(last, back);
        got += count;
        if (!count)
            await(last);
    }
    return (double)(__rdtsc() - begin) / (double)all;
}

static void *shared(size_t bytes)
{
    void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    if (at == MAP_FAILED) {
        perror("mmap");
        exit(1);
    }
    memset(at, 0, bytes);
    return at;
}

int main(int words, char **word)
{
    static struct descriptor bursts[BUFFERS];
    static const char *const names[] = {"yield", "futex", "spin"};
    int processors = (int)sysconf(_SC_NPROCESSORS_ONLN);

    if (words != 5)
        return 2;
    while (strcmp(word[1], names[how]))
        if (++how > SPIN)
            return 2;
    int functions = atoi(word[2]);
    unsigned long rounds = strtoul(word[3], NULL, 10), turns = strtoul(word[4], NULL, 10);
    if (functions < 1 || functions > MOST || !rounds || (how == SPIN && (functions > 1 || processors < 2)))
        return 2;
    struct ring *ring = shared((size_t)(functions + 1) * sizeof *ring);
    uint8_t(*bytes)[64] = shared(BUFFERS * sizeof *bytes);
    uint64_t *took = calloc(rounds, sizeof *took);
    for (int i = 0; i < BUFFERS; i++)
        bursts[i] = (struct descriptor){bytes[i], 64, 0};

    pin(processors - 1);
    alarm(SECONDS);
    for (int i = 0; i < functions; i++) {
        pid_t child = fork();

        if (child < 0 || !took)
            return 1;
        if (child)
            continue;
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        alarm(SECONDS);
        if (how == SPIN)
            pin(processors - 2);
        serve(&ring[i], &ring[i + 1]);
    }
    for (unsigned long turn = 0; turn <= turns; turn++) {
        double each = how == SPIN ? overlapping(&ring[0], &ring[functions], bursts, rounds)
                                  : one_by_one(&ring[0], &ring[functions], bursts, rounds, took);
        if (turn) /* the first warms up */
            printf("%.2f\n", each);
    }
    return 0;
}
