/* queue: values that leave in the order they came in. Serves BPF's QUEUE. Contract, control and memory: sequence.h.
 */
#ifndef MR_QUEUE_H
#define MR_QUEUE_H

#include "sequence.h"

/* The oldest. */
MR_INLINE u64 queue_place(const struct sequence *q)
{
    (void)q;
    return 0;
}

MR_INLINE void queue_drop(struct sequence *q, const struct shape *s) { sequence_drop_first(q, s); }

SEQUENCE_KIND(queue)

#endif
