/* parts: what packets add to numbers, a part for each core, and the sum of the other cores' parts.
 *
 * A core changes a copy of its own, and publishes it whole: so a reader sees all that a packet did to several numbers, or
 * nothing of it. A published part is two slots and a version: version v lies in slot v & 1. Who reads takes the version, the
 * slot, and the version again; the slot is written again for version v + 2, behind the store of version v + 1, so that a
 * version which is still v says that the slot was whole. A reader so repeats only because the owner has published in between: an owner
 * that stands still in the middle of it, or has died, keeps nobody waiting.
 *
 * The loads of a slot acquire and its stores release: a load that sees a store for version v + 2 makes the load of the version
 * behind it see v + 1 at least (C11 5.1.2.4). No fences, which ThreadSanitizer does not know.
 *
 * Memory: mapped(workers * stride), stride = 8 + 2 * 8 * members, rounded up to a cache line.
 */
#ifndef MR_SYNC_PARTS_H
#define MR_SYNC_PARTS_H

#include "../base.h"

#ifndef MR_POINT
#define MR_POINT() ((void)0)
#endif

/* For tests: a fault is planted where PARTS_FAULT is not 0. */
#ifndef PARTS_FAULT
#define PARTS_FAULT(n) 0
#endif
#define PARTS_FAULT_TORN 1  /* what was written meanwhile is taken */
#define PARTS_FAULT_LOST 2  /* a part is not published where its first member is a multiple of 4 */
#define PARTS_FAULT_TWICE 3 /* a part counts twice */
#define PARTS_FAULT_OLD 4   /* others' parts are kept for twice as long */

/* A core's part as others see it. */
struct parts_line {
    u64 version;
    u64 slots[]; /* two of as many numbers as there are members */
};

/* The parts of all cores. */
struct parts {
    u8 *lines;
    u32 workers;
};

MR_INLINE u32 parts_members(const struct shape *s) { return s->value_bytes / 8; }

MR_INLINE u64 parts_stride(const struct shape *s)
{
    return mr_round_up(sizeof(struct parts_line) + 16ull * parts_members(s), 64);
}

static inline int parts_create(struct parts *p, const struct shape *s, const struct mr_config *config)
{
    p->workers = config->workers ? config->workers : 1;
    p->lines = (u8 *)mr_map_memory(p->workers * parts_stride(s));
    return p->lines ? 0 : -ENOMEM;
}

static inline void parts_destroy(struct parts *p, const struct shape *s)
{
    mr_unmap_memory(p->lines, p->workers * parts_stride(s));
    p->lines = NULL;
}

MR_INLINE struct parts_line *parts_of(const struct parts *p, const struct shape *s, u32 worker)
{
    return (struct parts_line *)(void *)(p->lines + worker * parts_stride(s));
}

/* Two numbers of one member as one. */
MR_INLINE u64 parts_merged(const struct shape *s, u32 member, u64 a, u64 b)
{
    if (s->max >> member & 1)
        return a > b ? a : b;
    return s->or >> member & 1 ? a | b : a + b;
}

/* By the owner. */
MR_INLINE void parts_publish(struct parts_line *line, const struct shape *s, const u64 *own)
{
    u32 members = parts_members(s);
    u64 version = __atomic_load_n(&line->version, __ATOMIC_RELAXED) + 1;
    u64 *slot = line->slots + (version & 1) * members;

    for (u32 i = 0; i < members; i++) {
        MR_POINT();
        __atomic_store_n(&slot[i], own[i], __ATOMIC_RELEASE);
    }
    MR_POINT();
    __atomic_store_n(&line->version, version, __ATOMIC_RELEASE);
}

/* Adds a part to `sum`; the version that was added. `copy` is room for the members. */
MR_INLINE u64 parts_add(const struct parts_line *line, const struct shape *s, u64 *copy, u64 *sum)
{
    u32 members = parts_members(s);

    for (;;) {
        u64 version, again;
        const u64 *slot;

        MR_POINT();
        version = __atomic_load_n(&line->version, __ATOMIC_ACQUIRE);
        slot = line->slots + (version & 1) * members;
        for (u32 i = 0; i < members; i++) {
            MR_POINT();
            copy[i] = __atomic_load_n(&slot[i], __ATOMIC_ACQUIRE);
        }
        MR_POINT();
        again = __atomic_load_n(&line->version, __ATOMIC_RELAXED);
        if (mr_likely(again == version) || PARTS_FAULT(PARTS_FAULT_TORN)) {
            for (u32 i = 0; i < members; i++)
                sum[i] = parts_merged(s, i, sum[i], copy[i]);
            return version;
        }
    }
}

#endif
