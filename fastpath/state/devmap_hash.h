/* devmap_hash: interfaces by a 32-bit key. Serves BPF's DEVMAP_HASH.
 *
 * Contract. That of devmap.h, with any key (kernel/bpf/devmap.c dev_hash_map_redirect). A value whose
 * interface is 0 cannot be set. Memory: hash.h.
 */
#ifndef MR_DEVMAP_HASH_H
#define MR_DEVMAP_HASH_H

#include "broadcast.h"
#include "hash.h"

struct devmap_hash {
    struct hash hash;
};

MR_INLINE u64 devmap_hash_bytes(const struct shape *s) { return hash_bytes(s); }

static inline int devmap_hash_create(struct devmap_hash *m, const struct shape *s,
                                     const struct mr_config *config, const u8 *initial)
{
    return hash_create(&m->hash, s, config, initial);
}

static inline void devmap_hash_destroy(struct devmap_hash *m, const struct shape *s)
{
    hash_destroy(&m->hash, s);
}

MR_INLINE u64 devmap_hash_token(const struct devmap_hash *m, const struct shape *s, const u64 *key)
{
    return hash_token(&m->hash, s, key);
}

MR_INLINE u8 *devmap_hash_map_lookup_elem(struct devmap_hash *m, const struct shape *s, const u64 *key,
                                          u64 token, struct mr_packet *pkt)
{
    return hash_map_lookup_elem(&m->hash, s, key, token, pkt);
}

MR_INLINE u64 devmap_hash_redirect_map(struct devmap_hash *m, const struct shape *s, u64 index, u64 flags,
                                       struct mr_packet *pkt)
{
    const u64 key[1] = { (u32)index };
    const u8 *target;

    if (flags & ~(u64)(TARGETS_ACTION | TARGETS_BROADCAST | TARGETS_NOT_INGRESS))
        return MR_XDP_ABORTED;
    if (flags & TARGETS_BROADCAST) {
        struct broadcast b = { 0 };
        u8 number[8], value[8];
        u64 cursor = 0;

        while (!hash_next(&m->hash, s, &cursor, number, value, pkt->time))
            broadcast_add(&b, pkt, flags, targets_port(mr_load32(value)));
        return targets_result(pkt, 1, flags, broadcast_to(&b, pkt));
    }
    target = hash_map_lookup_elem(&m->hash, s, key, hash_token(&m->hash, s, key), pkt);
    return targets_result(pkt, target != NULL, flags, target ? targets_port(mr_load32(target)) : 0);
}

/* ---- control ---- */

static inline u64 devmap_hash_count(struct devmap_hash *m, const struct shape *s, u64 now)
{
    return hash_count(&m->hash, s, now);
}

static inline int devmap_hash_get(struct devmap_hash *m, const struct shape *s, const u8 *key, u8 *value,
                                  u64 now)
{
    return hash_get(&m->hash, s, key, value, now);
}

static inline int devmap_hash_set(struct devmap_hash *m, const struct shape *s, const u8 *key,
                                  const u8 *value, u64 now)
{
    if (!mr_load32(value) || (s->value_bytes == 8 && mr_load32(value + 4)))
        return -EINVAL;
    return hash_set(&m->hash, s, key, value, now);
}

static inline int devmap_hash_remove(struct devmap_hash *m, const struct shape *s, const u8 *key, u64 now)
{
    return hash_remove(&m->hash, s, key, now);
}

static inline int devmap_hash_next(struct devmap_hash *m, const struct shape *s, u64 *cursor, u8 *key,
                                   u8 *value, u64 now)
{
    return hash_next(&m->hash, s, cursor, key, value, now);
}

#endif
