/* ringbuf: records for the host, first in, first out. Serves BPF's RINGBUF.
 *
 * Contract. `capacity` is in bytes, a power of two and a multiple of 4096. A record of n bytes takes
 * round_up(8 + n, 8) of them, and less than all may be taken. Full: `ringbuf_output` -EAGAIN,
 * `ringbuf_reserve` null. `ringbuf_output`: -EINVAL for flags but 1 and 2 (wakeups, which mean nothing
 * here), -E2BIG above 2^30 - 1 bytes. `ringbuf_reserve`: null for any flag. `ringbuf_query`: 0 bytes
 * taken, 1 capacity, 2 consumer and 3 producer position, else 0. Records leave in the order they were
 * reserved, when the host drains them between bursts; one that is not yet given back holds up those
 * behind it. Discarded records are freed without being handed over. A reserved record is zero (in the
 * kernel it holds what lay there): what a program leaves of it says nothing of other packets' records, which
 * are others on each core.
 *
 * Records do not wrap: one that reaches the end goes on into a second half of the memory, whose other
 * places in the first half stay unused meanwhile, so that positions are the kernel's.
 *
 * Cost: two lines and the record. Memory: bytes = mapped(2 * capacity).
 */
#ifndef MR_RINGBUF_H
#define MR_RINGBUF_H

#include "ringbuf_record.h"

struct ringbuf {
    u8 *data;
    u64 consumer;
    u64 producer;
    u64 full; /* records that found no room and that an empty ring has room for */
};

MR_INLINE u64 ringbuf_bytes(const struct shape *s) { return mr_mapped_bytes(2 * s->capacity); }

static inline int ringbuf_create(struct ringbuf *r, const struct shape *s,
                                 const struct mr_config *config, const u8 *initial)
{
    (void)config;
    (void)initial;
    *r = (struct ringbuf){0};
    if (s->capacity < 4096 || (s->capacity & (s->capacity - 1)))
        return -EINVAL;
    if (s->capacity > MR_CAPACITY_MAX)
        return -E2BIG;
    r->data = mr_map_memory(2 * s->capacity);
    if (!r->data)
        return -ENOMEM;
    mr_forbid(r->data, 2 * s->capacity);
    return 0;
}

static inline void ringbuf_destroy(struct ringbuf *r, const struct shape *s)
{
    mr_unmap_memory(r->data, 2 * s->capacity);
    *r = (struct ringbuf){0};
}

MR_INLINE u64 ringbuf_step(u64 length) { return mr_round_up(RINGBUF_HEADER + length, 8); }

MR_INLINE u8 *ringbuf_take(struct ringbuf *r, const struct shape *s, u64 length)
{
    u8 *record;
    u64 after;

    if (length >= RINGBUF_DISCARD)
        return NULL;
    after = r->producer + ringbuf_step(length);
    if (after - r->consumer > s->capacity - 1) {
        r->full += ringbuf_step(length) <= s->capacity - 1;
        return NULL;
    }
    record = r->data + (r->producer & (s->capacity - 1)) + RINGBUF_HEADER;
    ringbuf_set_header(record, (u32)length | RINGBUF_BUSY);
    mr_allow(record, length);
    r->producer = after;
    return record;
}

MR_INLINE u64 ringbuf_ringbuf_output(struct ringbuf *r, const struct shape *s, u8 *bytes, u64 length,
                                     u64 flags, struct mr_packet *pkt)
{
    u8 *record;

    (void)pkt;
    if (flags & ~3ull)
        return mr_errno(EINVAL);
    if (length >= RINGBUF_DISCARD)
        return mr_errno(E2BIG);
    record = ringbuf_take(r, s, length);
    if (!record)
        return mr_errno(EAGAIN);
    memcpy(record, bytes, length);
    ringbuf_finish(record, 0);
    return 0;
}

MR_INLINE u8 *ringbuf_ringbuf_reserve(struct ringbuf *r, const struct shape *s, u64 length, u64 flags,
                                      struct mr_packet *pkt)
{
    u8 *record = flags ? NULL : ringbuf_take(r, s, length);

    (void)pkt;
    if (record)
        memset(record, 0, length);
    return record;
}

MR_INLINE u64 ringbuf_ringbuf_query(struct ringbuf *r, const struct shape *s, u64 what,
                                    struct mr_packet *pkt)
{
    (void)pkt;
    switch (what) {
    case 0:
        return r->producer - r->consumer;
    case 1:
        return s->capacity;
    case 2:
        return r->consumer;
    case 3:
        return r->producer;
    default:
        return 0;
    }
}

static inline void ringbuf_drain(struct ringbuf *r, const struct shape *s, u32 object, mr_record_fn *fn,
                                 void *context)
{
    while (r->consumer != r->producer) {
        u8 *record = r->data + (r->consumer & (s->capacity - 1)) + RINGBUF_HEADER;
        u32 header = ringbuf_header(record);
        u32 length = header & ~(RINGBUF_BUSY | RINGBUF_DISCARD);

        if (header & RINGBUF_BUSY)
            break;
        if (!(header & RINGBUF_DISCARD))
            fn(context, object, record, length);
        mr_forbid(record, ringbuf_step(length) - RINGBUF_HEADER);
        r->consumer += ringbuf_step(length);
    }
}

/* ---- control: records are drained, not looked up ---- */

/* Records in the buffer, discarded and unfinished ones included. */
static inline u64 ringbuf_count(struct ringbuf *r, const struct shape *s, u64 now)
{
    u64 count = 0;

    (void)now;
    for (u64 at = r->consumer; at != r->producer; count++) {
        u8 *record = r->data + (at & (s->capacity - 1)) + RINGBUF_HEADER;

        at += ringbuf_step(ringbuf_header(record) & ~(RINGBUF_BUSY | RINGBUF_DISCARD));
    }
    return count;
}

static inline u64 ringbuf_full(struct ringbuf *r, const struct shape *s, u64 now)
{
    (void)s;
    (void)now;
    return r->full;
}

/* ---- save and load: positions, which programs see; records are the host's before that ---- */

static inline int ringbuf_save(struct ringbuf *r, const struct shape *s, mr_saved_fn *fn, void *context)
{
    struct mr_saved head = {
        .what = MR_SAVED_HEAD, .place = r->producer, .stamp = r->full, .length = s->capacity
    };
    int error = r->consumer == r->producer ? fn(context, &head) : -EBUSY;

    return error ? error : fn(context, &(struct mr_saved){ .what = MR_SAVED_END });
}

static inline int ringbuf_load(struct ringbuf *r, const struct shape *s, const struct mr_saved *piece, u64 now)
{
    (void)s;
    (void)now;
    switch (piece->what) {
    case MR_SAVED_HEAD:
        if (piece->place % 8)
            return -EINVAL;
        r->consumer = r->producer = piece->place;
        r->full = piece->stamp;
        return 0;
    case MR_SAVED_END:
        return 0;
    default:
        return -EINVAL;
    }
}

#endif
