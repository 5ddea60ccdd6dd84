/* devmap: interfaces by an index. Serves BPF's DEVMAP.
 *
 * Contract. `redirect_map` (kernel/bpf/devmap.c dev_map_redirect): XDP_ABORTED for flags but the verdict,
 * BPF_F_BROADCAST and BPF_F_EXCLUDE_INGRESS; the verdict if nothing is at the index; else XDP_REDIRECT, and
 * the frame goes to the port of the interface: interface index n is port n - 1. `map_lookup_elem` gives
 * the value or null. Broadcasts: broadcast.h. Entries are set by the host; an 8-byte value must name no
 * program.
 */
#ifndef MR_DEVMAP_H
#define MR_DEVMAP_H

#include "broadcast.h"

struct devmap {
    struct targets targets;
};

MR_INLINE u64 devmap_bytes(const struct shape *s) { return elements_bytes(s); }

static inline int devmap_create(struct devmap *m, const struct shape *s, const struct mr_config *config,
                                const u8 *initial)
{
    (void)config;
    (void)initial;
    return elements_create(&m->targets.elements, s);
}

static inline void devmap_destroy(struct devmap *m, const struct shape *s)
{
    elements_destroy(&m->targets.elements, s);
}

/* The token is the index. */
MR_INLINE u64 devmap_token(const struct devmap *m, const struct shape *s, const u64 *key)
{
    (void)m;
    (void)s;
    return (u32)key[0];
}

MR_INLINE u8 *devmap_map_lookup_elem(struct devmap *m, const struct shape *s, const u64 *key, u64 token,
                                    struct mr_packet *pkt)
{
    (void)token;
    (void)pkt;
    return targets_find(&m->targets, s, key[0]);
}

MR_INLINE u64 devmap_redirect_map(struct devmap *m, const struct shape *s, u64 index, u64 flags,
                                  struct mr_packet *pkt)
{
    const u8 *target;

    if (flags & ~(u64)(TARGETS_ACTION | TARGETS_BROADCAST | TARGETS_NOT_INGRESS))
        return MR_XDP_ABORTED;
    if (flags & TARGETS_BROADCAST) {
        struct broadcast b = { 0 };

        for (u64 i = 0; i < s->capacity; i++) {
            target = targets_find(&m->targets, s, i);
            if (target)
                broadcast_add(&b, pkt, flags, targets_port(mr_load32(target)));
        }
        return targets_result(pkt, 1, flags, broadcast_to(&b, pkt));
    }
    target = targets_find(&m->targets, s, index);
    return targets_result(pkt, target != NULL, flags, target ? targets_port(mr_load32(target)) : 0);
}

static inline u64 devmap_count(struct devmap *m, const struct shape *s, u64 now)
{
    (void)now;
    return targets_count(&m->targets, s);
}

static inline int devmap_get(struct devmap *m, const struct shape *s, const u8 *key, u8 *value, u64 now)
{
    (void)now;
    return targets_get(&m->targets, s, key, value);
}

static inline int devmap_set(struct devmap *m, const struct shape *s, const u8 *key, const u8 *value,
                             u64 now)
{
    (void)now;
    return targets_set(&m->targets, s, key, value);
}

static inline int devmap_remove(struct devmap *m, const struct shape *s, const u8 *key, u64 now)
{
    (void)now;
    return targets_remove(&m->targets, s, key);
}

static inline int devmap_next(struct devmap *m, const struct shape *s, u64 *cursor, u8 *key, u8 *value,
                              u64 now)
{
    (void)now;
    return targets_next(&m->targets, s, cursor, key, value);
}

#endif
