/* queue: values that leave in the order they came in. Serves BPF's QUEUE. Contract, control and memory: sequence.h.
 */
#ifndef MR_QUEUE_H
#define MR_QUEUE_H

#include "sequence.h"

struct queue {
    struct sequence sequence;
};

MR_INLINE u64 queue_bytes(const struct shape *s) { return elements_bytes(s); }

static inline int queue_create(struct queue *q, const struct shape *s, const struct mr_config *config,
                               const u8 *initial)
{
    (void)config;
    (void)initial;
    return sequence_create(&q->sequence, s);
}

static inline void queue_destroy(struct queue *q, const struct shape *s)
{
    sequence_destroy(&q->sequence, s);
}

/* The oldest value; NULL: none. */
MR_INLINE u8 *queue_head(const struct queue *q, const struct shape *s)
{
    return q->sequence.used ? sequence_at(&q->sequence, s, 0) : NULL;
}

/* ---- BPF ---- */

MR_INLINE u64 queue_map_push_elem(struct queue *q, const struct shape *s, const u8 *value, u64 flags,
                                  struct mr_packet *pkt)
{
    (void)pkt;
    return sequence_push(&q->sequence, s, value, flags);
}

MR_INLINE u64 queue_map_peek_elem(struct queue *q, const struct shape *s, u8 *value,
                                  struct mr_packet *pkt)
{
    (void)pkt;
    return sequence_take(s, queue_head(q, s), value);
}

MR_INLINE u64 queue_map_pop_elem(struct queue *q, const struct shape *s, u8 *value,
                                 struct mr_packet *pkt)
{
    const u8 *head = queue_head(q, s);

    (void)pkt;
    if (head)
        sequence_drop_first(&q->sequence, s);
    return sequence_take(s, head, value);
}

/* ---- control ---- */

static inline u64 queue_count(struct queue *q, const struct shape *s, u64 now)
{
    (void)s;
    (void)now;
    return q->sequence.used;
}

static inline u64 queue_used(struct queue *q, const struct shape *s, u64 now)
{
    (void)s;
    (void)now;
    return q->sequence.used;
}

static inline int queue_get(struct queue *q, const struct shape *s, const u8 *key, u8 *value, u64 now)
{
    (void)key;
    (void)now;
    return (int)sequence_take(s, queue_head(q, s), value);
}

static inline int queue_set(struct queue *q, const struct shape *s, const u8 *key, const u8 *value,
                            u64 now)
{
    (void)key;
    (void)now;
    return (int)sequence_push(&q->sequence, s, value, 0);
}

static inline int queue_next(struct queue *q, const struct shape *s, u64 *cursor, u8 *key, u8 *value,
                             u64 now)
{
    (void)key;
    (void)now;
    return sequence_next(&q->sequence, s, cursor, value);
}

/* ---- save and load ---- */

static inline int queue_save(struct queue *q, const struct shape *s, mr_saved_fn *fn, void *context)
{
    return sequence_save(&q->sequence, s, fn, context);
}

static inline int queue_load(struct queue *q, const struct shape *s, const struct mr_saved *piece, u64 now)
{
    (void)now;
    return sequence_load(&q->sequence, s, piece);
}

#endif
