/* xskmap: sockets that take frames. Serves BPF's XSKMAP.
 *
 * Contract. `redirect_map` (net/xdp/xskmap.c xsk_map_redirect): XDP_ABORTED for flags above 3, the flags
 * if no entry is at the index, else XDP_REDIRECT, and the frame is consumed: whoever owns the socket has
 * it. `map_lookup_elem` tells whether an entry is there. Entries are set by the host: any number but 0.
 */
#ifndef MR_XSKMAP_H
#define MR_XSKMAP_H

#include "targets.h"

struct xskmap {
    struct targets targets;
};

MR_INLINE u64 xskmap_bytes(const struct shape *s) { return elements_bytes(s); }

static inline int xskmap_create(struct xskmap *m, const struct shape *s, const struct mr_config *config,
                                const u8 *initial)
{
    (void)config;
    (void)initial;
    return elements_create(&m->targets.elements, s);
}

static inline void xskmap_destroy(struct xskmap *m, const struct shape *s)
{
    elements_destroy(&m->targets.elements, s);
}

/* The token is the index. */
MR_INLINE u64 xskmap_token(const struct xskmap *m, const struct shape *s, const u64 *key)
{
    (void)m;
    (void)s;
    return (u32)key[0];
}

MR_INLINE u8 *xskmap_map_lookup_elem(struct xskmap *m, const struct shape *s, const u64 *key, u64 token,
                                    struct mr_packet *pkt)
{
    (void)token;
    (void)pkt;
    return targets_find(&m->targets, s, key[0]);
}

MR_INLINE u64 xskmap_redirect_map(struct xskmap *m, const struct shape *s, u64 index, u64 flags,
                                 struct mr_packet *pkt)
{
    if (flags & ~(u64)TARGETS_ACTION)
        return MR_XDP_ABORTED;
    return targets_result(pkt, targets_find(&m->targets, s, index) != NULL, flags, MR_TO_USER);
}

static inline u64 xskmap_count(struct xskmap *m, const struct shape *s, u64 now)
{
    (void)now;
    return targets_count(&m->targets, s);
}

static inline int xskmap_get(struct xskmap *m, const struct shape *s, const u8 *key, u8 *value, u64 now)
{
    (void)now;
    return targets_get(&m->targets, s, key, value);
}

static inline int xskmap_set(struct xskmap *m, const struct shape *s, const u8 *key, const u8 *value,
                             u64 now)
{
    (void)now;
    return targets_set(&m->targets, s, key, value);
}

static inline int xskmap_remove(struct xskmap *m, const struct shape *s, const u8 *key, u64 now)
{
    (void)now;
    return targets_remove(&m->targets, s, key);
}

static inline int xskmap_next(struct xskmap *m, const struct shape *s, u64 *cursor, u8 *key, u8 *value,
                              u64 now)
{
    (void)now;
    return targets_next(&m->targets, s, cursor, key, value);
}

#endif
