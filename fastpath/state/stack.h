/* stack: values of which the last in leaves first. Serves BPF's STACK. Contract, control and memory: sequence.h.
 */
#ifndef MR_STACK_H
#define MR_STACK_H

#include "sequence.h"

struct stack {
    struct sequence sequence;
};

MR_INLINE u64 stack_bytes(const struct shape *s) { return elements_bytes(s); }

static inline int stack_create(struct stack *q, const struct shape *s, const struct mr_config *config,
                               const u8 *initial)
{
    (void)config;
    (void)initial;
    return sequence_create(&q->sequence, s);
}

static inline void stack_destroy(struct stack *q, const struct shape *s)
{
    sequence_destroy(&q->sequence, s);
}

/* The newest value; NULL: none. */
MR_INLINE u8 *stack_head(const struct stack *q, const struct shape *s)
{
    return q->sequence.used ? sequence_at(&q->sequence, s, q->sequence.used - 1) : NULL;
}

/* ---- BPF ---- */

MR_INLINE u64 stack_map_push_elem(struct stack *q, const struct shape *s, const u8 *value, u64 flags,
                                  struct mr_packet *pkt)
{
    (void)pkt;
    return sequence_push(&q->sequence, s, value, flags);
}

MR_INLINE u64 stack_map_peek_elem(struct stack *q, const struct shape *s, u8 *value,
                                  struct mr_packet *pkt)
{
    (void)pkt;
    return sequence_take(s, stack_head(q, s), value);
}

MR_INLINE u64 stack_map_pop_elem(struct stack *q, const struct shape *s, u8 *value,
                                 struct mr_packet *pkt)
{
    const u8 *head = stack_head(q, s);

    (void)pkt;
    if (head)
        q->sequence.used--;
    return sequence_take(s, head, value);
}

/* ---- control ---- */

static inline u64 stack_count(struct stack *q, const struct shape *s, u64 now)
{
    (void)s;
    (void)now;
    return q->sequence.used;
}

static inline u64 stack_used(struct stack *q, const struct shape *s, u64 now)
{
    (void)s;
    (void)now;
    return q->sequence.used;
}

static inline int stack_get(struct stack *q, const struct shape *s, const u8 *key, u8 *value, u64 now)
{
    (void)key;
    (void)now;
    return (int)sequence_take(s, stack_head(q, s), value);
}

static inline int stack_set(struct stack *q, const struct shape *s, const u8 *key, const u8 *value,
                            u64 now)
{
    (void)key;
    (void)now;
    return (int)sequence_push(&q->sequence, s, value, 0);
}

static inline int stack_next(struct stack *q, const struct shape *s, u64 *cursor, u8 *key, u8 *value,
                             u64 now)
{
    (void)key;
    (void)now;
    return sequence_next(&q->sequence, s, cursor, value);
}

/* ---- save and load ---- */

static inline int stack_save(struct stack *q, const struct shape *s, mr_saved_fn *fn, void *context)
{
    return sequence_save(&q->sequence, s, fn, context);
}

static inline int stack_load(struct stack *q, const struct shape *s, const struct mr_saved *piece, u64 now)
{
    (void)now;
    return sequence_load(&q->sequence, s, piece);
}

#endif
