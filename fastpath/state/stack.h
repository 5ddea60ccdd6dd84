/* stack: values of which the last in leaves first. Serves BPF's STACK. Contract, control and memory: sequence.h.
 */
#ifndef MR_STACK_H
#define MR_STACK_H

#include "sequence.h"

/* The newest. */
MR_INLINE u64 stack_place(const struct sequence *q) { return q->used - 1; }

MR_INLINE void stack_drop(struct sequence *q, const struct shape *s)
{
    (void)s;
    q->used--;
}

SEQUENCE_KIND(stack)

#endif
