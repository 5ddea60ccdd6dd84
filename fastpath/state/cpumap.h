/* cpumap: CPUs that go on with a frame. Serves BPF's CPUMAP.
 *
 * Contract. `redirect_map` (kernel/bpf/cpumap.c cpu_map_redirect): XDP_ABORTED for flags above 3, the
 * flags if no entry is at the index, else XDP_REDIRECT, and the frame goes to the host's network stack,
 * as a frame that another CPU takes up does. A second program on that CPU is not run. Entries are set
 * by the host: the queue's size, not 0.
 */
#ifndef MR_CPUMAP_H
#define MR_CPUMAP_H

#include "targets.h"

struct cpumap {
    struct targets targets;
};

MR_INLINE u64 cpumap_bytes(const struct shape *s) { return elements_bytes(s); }

static inline int cpumap_create(struct cpumap *m, const struct shape *s, const struct mr_config *config,
                                const u8 *initial)
{
    (void)config;
    (void)initial;
    return elements_create(&m->targets.elements, s);
}

static inline void cpumap_destroy(struct cpumap *m, const struct shape *s)
{
    elements_destroy(&m->targets.elements, s);
}

MR_INLINE u64 cpumap_redirect_map(struct cpumap *m, const struct shape *s, u64 index, u64 flags,
                                 struct mr_packet *pkt)
{
    if (flags & ~(u64)TARGETS_ACTION)
        return MR_XDP_ABORTED;
    return targets_result(pkt, targets_find(&m->targets, s, index) != NULL, flags, MR_TO_HOST);
}

static inline u64 cpumap_count(struct cpumap *m, const struct shape *s, u64 now)
{
    (void)now;
    return targets_count(&m->targets, s);
}

static inline int cpumap_get(struct cpumap *m, const struct shape *s, const u8 *key, u8 *value, u64 now)
{
    (void)now;
    return targets_get(&m->targets, s, key, value);
}

static inline int cpumap_set(struct cpumap *m, const struct shape *s, const u8 *key, const u8 *value,
                             u64 now)
{
    (void)now;
    return targets_set(&m->targets, s, key, value);
}

static inline int cpumap_remove(struct cpumap *m, const struct shape *s, const u8 *key, u64 now)
{
    (void)now;
    return targets_remove(&m->targets, s, key);
}

static inline int cpumap_next(struct cpumap *m, const struct shape *s, u64 *cursor, u8 *key, u8 *value,
                              u64 now)
{
    (void)now;
    return targets_next(&m->targets, s, cursor, key, value);
}

#endif
