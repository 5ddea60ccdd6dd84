/* hash: what a reader may do to a table that workers share (lock.h, stamps.h). Each does what
 * its namesake in state/hash.h does, or nothing at all, and gives MR_RESTART.
 */
#ifndef MR_SYNC_HASH_H
#define MR_SYNC_HASH_H

#include "../state/hash.h"

/* The value if the entry's stamp or this core's keep it alive; MR_RESTART if another core's might. */
MR_INLINE u8 *hash_reader_find(struct hash *h, const struct shape *s, const u64 *key, u64 token,
                               int refresh, struct mr_packet *pkt)
{
    u32 index;
    u8 *entry = table_find(&h->table, s, hash_head(s), key, token, &index);

    if (!entry)
        return NULL;
    if (s->expire_after) {
        u64 latest = stamps_known(&h->stamps, pkt->core, index, hash_stamp(entry));

        if (mr_unlikely(expiry_over(latest, s->expire_after, pkt->time)))
            return MR_RESTART;
        if (refresh && mr_unlikely(stamps_touch(&h->stamps, index, pkt)))
            return MR_RESTART;
    }
    return table_value(s, entry, hash_head(s));
}

MR_INLINE u8 *hash_reader_map_get(struct hash *h, const struct shape *s, const u64 *key, u64 token,
                                  struct mr_packet *pkt)
{
    return hash_reader_find(h, s, key, token, 0, pkt);
}

MR_INLINE u8 *hash_reader_map_refresh(struct hash *h, const struct shape *s, const u64 *key, u64 token,
                                      struct mr_packet *pkt)
{
    return hash_reader_find(h, s, key, token, 1, pkt);
}

MR_INLINE u8 *hash_reader_map_lookup_elem(struct hash *h, const struct shape *s, const u64 *key,
                                          u64 token, struct mr_packet *pkt)
{
    return hash_reader_find(h, s, key, token, 0, pkt);
}

/* map_refresh of a table that the worker has for itself, by a reader that may have to run again, at a later time: it
 * must then not find alive what only its first run has kept. MR_RESTART if there is no room to keep the old stamp. */
MR_INLINE u8 *hash_kept_map_refresh(struct hash *h, const struct shape *s, const u64 *key, u64 token,
                                    struct mr_packet *pkt)
{
    u8 *entry = hash_find(h, s, key, token, pkt->time);

    if (!entry)
        return NULL;
    if (s->expire_after && undo_keep((struct undo *)pkt->undo, (const u8 *)hash_stamp(entry), 8))
        return MR_RESTART;
    hash_touch(h, s, entry, pkt->time);
    return table_value(s, entry, hash_head(s));
}

/* Whether nothing fits whatever a writer would reclaim: bounds of the queue are no later than what they bound, and
 * what readers refresh only moves that on. Counted; 0 also where only a writer can count. */
MR_INLINE int hash_reader_refuses(struct hash *h, const struct shape *s, struct mr_packet *pkt)
{
    if (h->table.used < s->capacity || (s->expire_after && expiry_any(&h->expiry, pkt->time)))
        return 0;
    return !stamps_refuse(&h->stamps, pkt);
}

/* To put what is there is to refresh it, and what has no room is refused. */
MR_INLINE u8 *hash_reader_map_put(struct hash *h, const struct shape *s, const u64 *key, u64 token,
                                  const u8 *value, struct mr_packet *pkt)
{
    u8 *there = hash_reader_find(h, s, key, token, 0, pkt);

    if (!there)
        return hash_reader_refuses(h, s, pkt) ? NULL : MR_RESTART;
    if (there == MR_RESTART || memcmp(there, value, s->value_bytes))
        return MR_RESTART;
    return hash_reader_find(h, s, key, token, 1, pkt);
}

MR_INLINE u64 hash_reader_map_update_elem(struct hash *h, const struct shape *s, const u64 *key,
                                          u64 token, const u8 *value, u64 flags, struct mr_packet *pkt)
{
    u8 *there = hash_reader_find(h, s, key, token, 0, pkt);

    if (flags > HASH_BPF_EXIST)
        return mr_errno(EINVAL);
    if (there == MR_RESTART)
        return MR_RESTART_NUMBER;
    if (there && flags == HASH_BPF_NOEXIST)
        return mr_errno(EEXIST);
    if (!there && flags == HASH_BPF_EXIST)
        return mr_errno(ENOENT);
    if (!there)
        return hash_reader_refuses(h, s, pkt) ? mr_errno(E2BIG) : MR_RESTART_NUMBER;
    if (s->timer || memcmp(there, value, s->value_bytes))
        return MR_RESTART_NUMBER;
    return s->expire_after && hash_reader_find(h, s, key, token, 1, pkt) == MR_RESTART ? MR_RESTART_NUMBER : 0;
}

/* What is not there need not be deleted; an expired entry is, which only a writer does. */
MR_INLINE u64 hash_reader_map_delete(struct hash *h, const struct shape *s, const u64 *key, u64 token,
                                     struct mr_packet *pkt)
{
    return hash_reader_find(h, s, key, token, 0, pkt) ? MR_RESTART_NUMBER : 0;
}

MR_INLINE u64 hash_reader_map_delete_elem(struct hash *h, const struct shape *s, const u64 *key,
                                          u64 token, struct mr_packet *pkt)
{
    return hash_reader_find(h, s, key, token, 0, pkt) ? MR_RESTART_NUMBER : mr_errno(ENOENT);
}

#endif
