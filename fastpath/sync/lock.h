/* lock: a read/write lock with a cache line for each core, after section 4 (Code generation) of
 * Pereira et al., Automatic Parallelization of Software Network Functions, NSDI 2024.
 *
 * A reader takes the line of its own core and writes nothing that others read; a writer takes all lines,
 * in order. What differs from the paper: a line is a ticket lock (Mellor-Crummey and Scott, Algorithms
 * for scalable synchronization on shared-memory multiprocessors, ACM TOCS 9, 1991, section 2.2), and a
 * writer puts itself down at all lines before it waits for the first. So it waits for the slowest
 * reader and not for the sum of them, no reader that comes again overtakes it, and a reader sees in its
 * own line that somebody waits (`lock_wanted`).
 *
 * No deadlock: writers go one after another through `writers`, so at most one of them waits at the
 * lines; it waits for readers only, and a reader waits for nobody while it has its line. A reader
 * gives up its line before it becomes a writer. No starvation: every queue is first in, first out.
 *
 * Waiting is LOCK_SPINS pauses, then yields to the scheduler: there may be more workers than processors.
 *
 * Order: what a writer wrote is seen by whoever has a line after it. `commits` counts writers; it is
 * written by who has all lines and read by who has one.
 *
 * Cost, uncontended: one atomic addition and one store for a reader; two atomic operations and one
 * store a core, in lines that come from these cores, for a writer. docs/measurements/bench.md has figures.
 *
 * For tests: MR_LOCK_DROPPED leaves writers unlocked, MR_POINT() is where a test may switch threads.
 */
#ifndef MR_SYNC_LOCK_H
#define MR_SYNC_LOCK_H

#include <sched.h>

#include "../base.h"

/* The most workers that share state; above it `create_shared` answers -E2BIG. */
#define LOCK_CORES_MAX 1024u

/* Pauses before the first yield: longer than a packet takes, shorter than a time slice. */
#ifndef LOCK_SPINS
#define LOCK_SPINS 256u
#endif

#ifndef MR_POINT
#define MR_POINT() ((void)0)
#endif

struct lock_line {
    u32 next;    /* the ticket that the next comer gets */
    u32 serving; /* the ticket whose turn it is */
    u32 writer;  /* the ticket of the writer at hand */
    u64 time;    /* ns: the latest packet of this core; written by its reader, read by writers */
} __attribute__((aligned(64)));

struct lock {
    struct lock_line writers;
    struct lock_line *line; /* one a core */
    u64 commits;            /* writers so far */
    u64 time;               /* ns: the latest writer's */
    u32 cores;
};

MR_INLINE u64 lock_bytes(u32 cores) { return mr_mapped_bytes(sizeof(struct lock_line) * cores); }

static inline int lock_create(struct lock *k, u32 cores)
{
    *k = (struct lock){0};
    if (cores == 0)
        return -EINVAL;
    if (cores > LOCK_CORES_MAX)
        return -E2BIG;
    k->line = (struct lock_line *)mr_map_memory(sizeof(struct lock_line) * cores);
    k->cores = cores;
    return k->line ? 0 : -ENOMEM;
}

static inline void lock_destroy(struct lock *k)
{
    mr_unmap_memory(k->line, sizeof(struct lock_line) * k->cores);
    *k = (struct lock){0};
}

MR_INLINE void lock_pause(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("isb");
#endif
}

MR_OUTLINE void lock_wait(const struct lock_line *l, u32 ticket)
{
    for (u32 spins = 0; __atomic_load_n(&l->serving, __ATOMIC_ACQUIRE) != ticket;) {
        if (spins < LOCK_SPINS) {
            spins++;
            lock_pause();
        } else {
            sched_yield();
        }
    }
}

/* Ordered by `next`, too, for who only reads it by an addition of 0 (state/pools.h). */
MR_INLINE u32 lock_ticket(struct lock_line *l) { return __atomic_fetch_add(&l->next, 1, __ATOMIC_ACQ_REL); }

MR_INLINE void lock_turn(const struct lock_line *l, u32 ticket)
{
    if (mr_unlikely(__atomic_load_n(&l->serving, __ATOMIC_ACQUIRE) != ticket))
        lock_wait(l, ticket);
}

/* Only who has the line writes `serving`, so that it need not be an addition. */
MR_INLINE void lock_pass(struct lock_line *l) { __atomic_store_n(&l->serving, l->serving + 1, __ATOMIC_RELEASE); }

/* ---- readers ---- */

MR_INLINE void lock_read(struct lock *k, u32 core)
{
    lock_turn(&k->line[core], lock_ticket(&k->line[core]));
    MR_POINT();
}

MR_INLINE void lock_read_end(struct lock *k, u32 core)
{
    MR_POINT();
    lock_pass(&k->line[core]);
}

/* Whether a writer waits for this reader. */
MR_INLINE int lock_wanted(const struct lock *k, u32 core)
{
    const struct lock_line *l = &k->line[core];

    return __atomic_load_n(&l->next, __ATOMIC_RELAXED) != l->serving + 1;
}

MR_OUTLINE void lock_give_way(struct lock *k, u32 core)
{
    lock_read_end(k, core);
    lock_read(k, core);
}

/* Lets a writer that waits go first. */
MR_INLINE void lock_read_again(struct lock *k, u32 core)
{
    if (mr_unlikely(lock_wanted(k, core)))
        lock_give_way(k, core);
}

/* The same between the packets of a burst, for one comparison a packet: `line` is the core's, and `next` the ticket that the next
 * comer gets while nobody waits, as it was when the burst began. Where the line changed hands since, it gives way in vain once. */
MR_INLINE struct lock_line *lock_line(const struct lock *k, u32 core) { return &k->line[core]; }

MR_INLINE u32 lock_next(const struct lock_line *line) { return line->serving + 1; }

MR_INLINE void lock_read_on(struct lock *k, u32 core, const struct lock_line *line, u32 *next)
{
    if (mr_unlikely(__atomic_load_n(&line->next, __ATOMIC_RELAXED) != *next)) {
        lock_give_way(k, core);
        *next = lock_next(line);
    }
}

/* ---- writers ---- */

#ifndef MR_LOCK_DROPPED

MR_OUTLINE void lock_write(struct lock *k)
{
    lock_turn(&k->writers, lock_ticket(&k->writers));
    for (u32 i = 0; i < k->cores; i++)
        k->line[i].writer = lock_ticket(&k->line[i]);
    for (u32 i = 0; i < k->cores; i++)
        lock_turn(&k->line[i], k->line[i].writer);
    MR_POINT();
}

MR_OUTLINE void lock_write_end(struct lock *k)
{
    MR_POINT();
    for (u32 i = 0; i < k->cores; i++)
        lock_pass(&k->line[i]);
    lock_pass(&k->writers);
}

/* The writer goes on as a reader of this core; no other writer comes in between. */
MR_OUTLINE void lock_write_to_read(struct lock *k, u32 core)
{
    MR_POINT();
    for (u32 i = 0; i < k->cores; i++)
        if (i != core)
            lock_pass(&k->line[i]);
    lock_pass(&k->writers);
}

#else

MR_INLINE void lock_write(struct lock *k) { (void)k; }
MR_INLINE void lock_write_end(struct lock *k) { (void)k; }
MR_INLINE void lock_write_to_read(struct lock *k, u32 core) { lock_read(k, core); }

#endif

/* A reader that must write: nothing that it read holds any more when this returns. */
MR_INLINE void lock_read_to_write(struct lock *k, u32 core)
{
    lock_read_end(k, core);
    lock_write(k);
}

/* ---- what becomes of a packet ---- */

enum {
    LOCK_DONE,    /* its fate is set */
    LOCK_RESTART, /* it has to run as a writer, from the beginning; nothing that it did so far may show */
};

/* ---- the order of packets ----
 *
 * Sorted by this number, and equal ones by the packets' numbers, packets are in an order in which one
 * core could have run them with the same results: a writer runs alone, and readers between two writers
 * change nothing that another of them reads. */

MR_INLINE u64 lock_commit_read(const struct lock *k) { return 2 * k->commits + 1; }

MR_INLINE u64 lock_commit_write(struct lock *k) { return 2 * ++k->commits; }

/* ---- the time of packets ----
 *
 * Time never goes back in that order: a packet that commits behind one with a later time has the later time, as it
 * would on one core whose clock is read when the packet's turn comes. So a program that subtracts an earlier
 * packet's time from its own never gets a negative number, and what has expired stays so.
 *
 * A writer is no earlier than any packet before it; a reader no earlier than the last writer, and than the reader
 * before it on its core. Readers between two writers change nothing that another of them reads, so that they may be
 * sorted by their times. A reader writes its time into the line that it has anyway, and reads that of the last writer
 * beside `commits`; a writer reads all lines, which it has. */

/* The time (ns) of a reader of this core whose packet came at `time`. */
MR_INLINE u64 lock_time_read(struct lock *k, u32 core, u64 time)
{
    struct lock_line *l = &k->line[core];

    if (mr_unlikely(time < k->time))
        time = k->time;
    if (mr_unlikely(time < l->time))
        time = l->time;
    l->time = time;
    return time;
}

/* The time (ns) of a writer whose packet came, or whose timer is due, at `time`. */
MR_INLINE u64 lock_time_write(struct lock *k, u64 time)
{
    for (u32 i = 0; i < k->cores; i++)
        if (time < k->line[i].time)
            time = k->line[i].time;
    if (time < k->time)
        time = k->time;
    k->time = time;
    return time;
}

#endif
