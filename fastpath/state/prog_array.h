/* prog_array: programs to go on with. Serves BPF's PROG_ARRAY.
 *
 * An element is the number of a program of this module from 1, or 0. `tail_call` gives that number for
 * the emitted code to go on with, and 0 where the kernel falls through to the next instruction: an index
 * beyond the end or an empty element (kernel/bpf/core.c ___bpf_prog_run, JMP_TAIL_CALL). The limit of
 * MAX_TAIL_CALL_CNT a packet is the emitted code's. Memory: elements.h.
 */
#ifndef MR_PROG_ARRAY_H
#define MR_PROG_ARRAY_H

#include "elements.h"

#define MR_TAIL_CALLS 33u

struct prog_array {
    struct elements elements;
};

MR_INLINE u64 prog_array_bytes(const struct shape *s) { return elements_bytes(s); }

/* `initial`: for each element the number as 32 bits. */
static inline int prog_array_create(struct prog_array *p, const struct shape *s,
                                    const struct mr_config *config, const u8 *initial)
{
    int error = elements_create(&p->elements, s);

    (void)config;
    for (u64 i = 0; !error && initial && i < s->capacity; i++)
        memcpy(elements_at(&p->elements, s, i), initial + 4 * i, 4);
    return error;
}

static inline void prog_array_destroy(struct prog_array *p, const struct shape *s)
{
    elements_destroy(&p->elements, s);
}

MR_INLINE u64 prog_array_tail_call(struct prog_array *p, const struct shape *s, u64 index,
                                   struct mr_packet *pkt)
{
    const u8 *element = elements_at(&p->elements, s, (u32)index);

    (void)pkt;
    return element ? mr_load32(element) : 0;
}

/* The same for a tail call in a function: what is emitted around it differs. */
MR_INLINE u64 prog_array_tail_away(struct prog_array *p, const struct shape *s, u64 index,
                                   struct mr_packet *pkt)
{
    return prog_array_tail_call(p, s, index, pkt);
}

/* The number of a program from 1; one that does not exist aborts the packet. */
static inline int prog_array_set(struct prog_array *p, const struct shape *s, const u8 *key,
                                 const u8 *value, u64 now)
{
    (void)now;
    return elements_set(&p->elements, s, mr_number(s, key), value);
}

static inline u64 prog_array_count(struct prog_array *p, const struct shape *s, u64 now)
{
    u64 count = 0;

    (void)now;
    for (u64 i = 0; i < s->capacity; i++)
        count += mr_load32(elements_at(&p->elements, s, i)) != 0;
    return count;
}

/* ---- save and load ---- */

static inline int prog_array_save(struct prog_array *p, const struct shape *s, mr_saved_fn *fn, void *context)
{
    return elements_save(&p->elements, s, fn, context);
}

static inline int prog_array_load(struct prog_array *p, const struct shape *s, const struct mr_saved *piece,
                                  u64 now)
{
    (void)now;
    return elements_load(&p->elements, s, piece);
}

#endif
