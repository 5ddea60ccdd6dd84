/* distributed: the handlers' DISTRIBUTED, up to 64 numbers that packets change by one of three operators each.
 *
 * Contract. All members are there from the start, 0. `distributed_read` gives a member. As one copy (`staleness` of the shape is 0)
 * that is all. With a part for each core (sync/parts.h) a core changes its own, and reads that together with what the other
 * cores' parts were at most `staleness` ns of its packets' time before: all members of one moment, and its own as they are. A core's
 * changes are published when its burst has ended, and within a burst at the first change by a packet more than `staleness` behind the first
 * one that has not been.
 *
 * Time that goes back brings the others' parts again.
 *
 * Cost, on one core: a change is an addition in the first-level cache. A read is another one, and once in `staleness` ns a
 * cache miss for each other core. Memory: mapped(2 * value_bytes), and parts.h once.
 */
#ifndef MR_DISTRIBUTED_H
#define MR_DISTRIBUTED_H

#include "../sync/parts.h"

#ifdef MR_PARTS_NOTED
#include <stdlib.h>
#endif

struct distributed {
    u64 *own;    /* what this core did */
    u64 *others; /* what the others had done at `at` */
    struct parts_line *line; /* where it is published; NULL: one copy */
    const struct parts *parts;
    u64 at;      /* time of the packet that has asked for `others` last */
    u64 since;   /* time of the first change that is not published */
    u64 packet;  /* number of the packet that has made the last one */
    u32 worker;
    u8 asked;    /* `at` and `others` hold something */
    u8 dirty;    /* there are changes that are not published */
#ifdef MR_PARTS_NOTED
    u64 *versions; /* by worker: which part is in `others` */
    u8 read;       /* a packet has read since this was noted */
    u8 fed;        /* `others` is from outside, and stays */
#endif
};

MR_INLINE u64 distributed_bytes(const struct shape *s) { return mr_mapped_bytes(2ull * s->value_bytes); }

static inline int distributed_create(struct distributed *d, const struct shape *s, const struct mr_config *config,
                                     const u8 *initial)
{
    (void)config;
    (void)initial;
    *d = (struct distributed){0};
    if (s->value_bytes == 0 || s->value_bytes % 8 || parts_members(s) > 64)
        return -EINVAL;
    d->own = (u64 *)mr_map_memory(2ull * s->value_bytes);
    if (!d->own)
        return -ENOMEM;
    d->others = d->own + parts_members(s);
    return 0;
}

static inline void distributed_destroy(struct distributed *d, const struct shape *s)
{
    mr_unmap_memory(d->own, 2ull * s->value_bytes);
#ifdef MR_PARTS_NOTED
    free(d->versions);
#endif
    *d = (struct distributed){0};
}

/* This core has this part; where it fails nothing is left of the object. */
static inline int distributed_join(struct distributed *d, const struct shape *s, const struct parts *parts, u32 worker)
{
    if (worker >= parts->workers) {
        distributed_destroy(d, s);
        return -EINVAL;
    }
    d->parts = parts;
    d->line = parts_of(parts, s, worker);
    d->worker = worker;
#ifdef MR_PARTS_NOTED
    d->versions = (u64 *)calloc(parts->workers, sizeof *d->versions);
    if (!d->versions) {
        distributed_destroy(d, s);
        return -ENOMEM;
    }
#endif
    return 0;
}

/* At the end of a burst, and behind whatever else changes members. */
MR_INLINE void distributed_publish(struct distributed *d, const struct shape *s)
{
    if (!s->staleness || !d->dirty)
        return;
    if (!PARTS_FAULT(PARTS_FAULT_LOST) || d->own[0] % 4)
        parts_publish(d->line, s, d->own);
    d->dirty = 0;
}

MR_OUTLINE void distributed_ask(struct distributed *d, const struct shape *s, u64 now)
{
    u64 copy[64];

    memset(d->others, 0, s->value_bytes);
    for (u32 w = 0; w < d->parts->workers; w++) {
        u64 version;

        if (w == d->worker)
            continue;
        version = parts_add(parts_of(d->parts, s, w), s, copy, d->others);
        if (PARTS_FAULT(PARTS_FAULT_TWICE))
            parts_add(parts_of(d->parts, s, w), s, copy, d->others);
#ifdef MR_PARTS_NOTED
        d->versions[w] = version;
#else
        (void)version;
#endif
    }
    d->at = now;
    d->asked = 1;
}

/* Before a change. */
MR_INLINE void distributed_change(struct distributed *d, const struct shape *s, const struct mr_packet *pkt)
{
    if (!s->staleness)
        return;
    if (d->dirty) {
        if (mr_unlikely(pkt->time - d->since > s->staleness) && d->packet != pkt->number)
            distributed_publish(d, s);
    }
    if (!d->dirty) {
        d->since = pkt->time;
        d->dirty = 1;
    }
    d->packet = pkt->number;
}

MR_INLINE u64 distributed_distributed_add(struct distributed *d, const struct shape *s, u64 member, u64 n,
                                          struct mr_packet *pkt)
{
    distributed_change(d, s, pkt);
    if (member < parts_members(s))
        d->own[member] += n;
    return 0;
}

MR_INLINE u64 distributed_distributed_max(struct distributed *d, const struct shape *s, u64 member, u64 n,
                                          struct mr_packet *pkt)
{
    distributed_change(d, s, pkt);
    if (member < parts_members(s) && n > d->own[member])
        d->own[member] = n;
    return 0;
}

MR_INLINE u64 distributed_distributed_or(struct distributed *d, const struct shape *s, u64 member, u64 n,
                                         struct mr_packet *pkt)
{
    distributed_change(d, s, pkt);
    if (member < parts_members(s))
        d->own[member] |= n;
    return 0;
}

MR_INLINE u64 distributed_distributed_read(struct distributed *d, const struct shape *s, u64 member,
                                           struct mr_packet *pkt)
{
    if (member >= parts_members(s))
        return 0;
#ifdef MR_PARTS_NOTED
    d->read = 1;
    if (d->fed)
        return parts_merged(s, (u32)member, d->own[member], d->others[member]);
#endif
    if (!s->staleness)
        return d->own[member];
    if (mr_unlikely(!d->asked || pkt->time - d->at > (PARTS_FAULT(PARTS_FAULT_OLD) ? 2 : 1) * s->staleness))
        distributed_ask(d, s, pkt->time);
    return parts_merged(s, (u32)member, d->own[member], d->others[member]);
}

/* ---- control: one entry, of this core's part ---- */

static inline u64 distributed_count(struct distributed *d, const struct shape *s, u64 now)
{
    (void)d;
    (void)s;
    (void)now;
    return 1;
}

static inline int distributed_get(struct distributed *d, const struct shape *s, const u8 *key, u8 *value, u64 now)
{
    (void)now;
    if (mr_number(s, key))
        return -ENOENT;
    memcpy(value, d->own, s->value_bytes);
    return 0;
}

static inline int distributed_set(struct distributed *d, const struct shape *s, const u8 *key, const u8 *value, u64 now)
{
    (void)now;
    if (mr_number(s, key))
        return -E2BIG;
    memcpy(d->own, value, s->value_bytes);
    d->dirty = 1;
    distributed_publish(d, s);
    return 0;
}

static inline int distributed_remove(struct distributed *d, const struct shape *s, const u8 *key, u64 now)
{
    (void)d;
    (void)s;
    (void)key;
    (void)now;
    return -EINVAL;
}

static inline int distributed_next(struct distributed *d, const struct shape *s, u64 *cursor, u8 *key, u8 *value, u64 now)
{
    (void)now;
    if (*cursor)
        return -ENOENT;
    mr_number_out(s, key, 0);
    memcpy(value, d->own, s->value_bytes);
    *cursor = 1;
    return 0;
}

/* ---- save and load: as a vector of one element ---- */

static inline int distributed_save(struct distributed *d, const struct shape *s, mr_saved_fn *fn, void *context)
{
    struct mr_saved piece = { .what = MR_SAVED_ENTRY, .due = UINT64_MAX, .length = s->value_bytes,
                              .value = (const u8 *)d->own };
    int error = fn(context, &(struct mr_saved){ .what = MR_SAVED_HEAD, .length = s->capacity });
    u64 any = 0;

    for (u32 i = 0; i < parts_members(s); i++)
        any |= d->own[i];
    if (!error && any)
        error = fn(context, &piece);
    return error ? error : fn(context, &(struct mr_saved){ .what = MR_SAVED_END });
}

static inline int distributed_load(struct distributed *d, const struct shape *s, const struct mr_saved *piece, u64 now)
{
    (void)now;
    switch (piece->what) {
    case MR_SAVED_HEAD:
        memset(d->own, 0, s->value_bytes);
        break;
    case MR_SAVED_ENTRY:
        if (piece->place)
            return -E2BIG;
        memcpy(d->own, piece->value, s->value_bytes);
        break;
    case MR_SAVED_END:
        break;
    default:
        return -EINVAL;
    }
    d->dirty = 1;
    distributed_publish(d, s);
    return 0;
}

/* ---- for tests ---- */

#ifdef MR_PARTS_NOTED
/* What it holds since the last call. */
static inline void distributed_note(struct distributed *d, const struct shape *s, struct mr_parts_seen *seen)
{
    seen->members = parts_members(s);
    seen->workers = d->parts ? d->parts->workers : 0;
    seen->read = d->read;
    seen->at = d->at;
    seen->version = d->line ? __atomic_load_n(&d->line->version, __ATOMIC_RELAXED) : 0;
    seen->own = d->own;
    seen->others = d->others;
    seen->versions = d->versions;
    d->read = 0;
}

/* What a core did, and what it saw of the others. */
static inline void distributed_feed(struct distributed *d, const struct shape *s, const u64 *own, const u64 *others)
{
    memcpy(d->own, own, s->value_bytes);
    memcpy(d->others, others, s->value_bytes);
    d->fed = 1;
}
#endif

#endif
