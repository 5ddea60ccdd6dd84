/* perf_event_array: records for the host, with bytes of the packet behind them. Serves BPF's
 * PERF_EVENT_ARRAY, of which the host has opened the event of each CPU.
 *
 * Contract of `perf_event_output` (net/core/filter.c bpf_xdp_event_output and kernel/trace/bpf_trace.c
 * __bpf_perf_event_output), in this order: -EINVAL for flags but the index (low 32 bits, 0xffffffff for
 * this CPU's) and the number of packet bytes (20 bits from 32 on); -EFAULT for more bytes than the packet
 * has; -E2BIG for an index beyond the last entry; -EOPNOTSUPP for another CPU's; -ENOSPC if the host has
 * not taken enough of the earlier ones. A record is the program's bytes and behind them the packet's.
 *
 * Memory: a ring of PERF_BYTES, ringbuf.h.
 */
#ifndef MR_PERF_EVENT_ARRAY_H
#define MR_PERF_EVENT_ARRAY_H

#include "ringbuf.h"

#define PERF_BYTES (1u << 20)
#define PERF_THIS_CPU 0xffffffffull
#define PERF_FRAME_SHIFT 32
#define PERF_FRAME_MASK (0xfffffull << PERF_FRAME_SHIFT)

static const struct shape perf_shape = { .capacity = PERF_BYTES };

struct perf_event_array {
    struct ringbuf ring;
};

MR_INLINE u64 perf_event_array_bytes(const struct shape *s)
{
    (void)s;
    return ringbuf_bytes(&perf_shape);
}

static inline int perf_event_array_create(struct perf_event_array *p, const struct shape *s,
                                          const struct mr_config *config, const u8 *initial)
{
    (void)s;
    return ringbuf_create(&p->ring, &perf_shape, config, initial);
}

static inline void perf_event_array_destroy(struct perf_event_array *p, const struct shape *s)
{
    (void)s;
    ringbuf_destroy(&p->ring, &perf_shape);
}

MR_INLINE u64 perf_event_array_perf_event_output(struct perf_event_array *p, const struct shape *s,
                                                 u64 flags, u8 *bytes, u64 length, struct mr_packet *pkt)
{
    u64 frame = (flags & PERF_FRAME_MASK) >> PERF_FRAME_SHIFT;
    u64 index = (u32)flags;
    u8 *record;

    if (flags & ~(PERF_FRAME_MASK | PERF_THIS_CPU))
        return mr_errno(EINVAL);
    if (frame > (u64)(pkt->end - pkt->data))
        return mr_errno(EFAULT);
    if (index == PERF_THIS_CPU)
        index = pkt->cpu;
    if (index >= s->capacity)
        return mr_errno(E2BIG);
    if (index != pkt->cpu)
        return mr_errno(EOPNOTSUPP);
    record = ringbuf_take(&p->ring, &perf_shape, length + frame);
    if (!record)
        return mr_errno(ENOSPC);
    memcpy(record, bytes, length);
    memcpy(record + length, pkt->data, frame);
    ringbuf_finish(record, 0);
    return 0;
}

static inline void perf_event_array_drain(struct perf_event_array *p, const struct shape *s, u32 object,
                                          mr_record_fn *fn, void *context)
{
    (void)s;
    ringbuf_drain(&p->ring, &perf_shape, object, fn, context);
}

static inline u64 perf_event_array_count(struct perf_event_array *p, const struct shape *s, u64 now)
{
    (void)s;
    return ringbuf_count(&p->ring, &perf_shape, now);
}

static inline u64 perf_event_array_full(struct perf_event_array *p, const struct shape *s, u64 now)
{
    (void)s;
    return ringbuf_full(&p->ring, &perf_shape, now);
}

#endif
