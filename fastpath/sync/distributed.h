/* distributed: changes of a worker's own part by a packet that may have to run again (lock.h, transact.h). Each does what its namesake in
 * state/distributed.h does and keeps what it overwrites, or gives MR_RESTART_NUMBER where there is no room for that. What is
 * taken back was never published: within a burst only the parts of packets before are. */
#ifndef MR_SYNC_DISTRIBUTED_H
#define MR_SYNC_DISTRIBUTED_H

#include "../state/distributed.h"
#include "stamps.h"
#include "undo.h"

MR_INLINE int distributed_keep(const struct distributed *d, const struct shape *s, u64 member, const struct mr_packet *pkt)
{
    return member < parts_members(s) && undo_keep((struct undo *)pkt->undo, (const u8 *)&d->own[member], 8);
}

MR_INLINE u64 distributed_kept_distributed_add(struct distributed *d, const struct shape *s, u64 member, u64 n,
                                               struct mr_packet *pkt)
{
    distributed_change(d, s, pkt);
    return distributed_keep(d, s, member, pkt) ? MR_RESTART_NUMBER : distributed_distributed_add(d, s, member, n, pkt);
}

MR_INLINE u64 distributed_kept_distributed_max(struct distributed *d, const struct shape *s, u64 member, u64 n,
                                               struct mr_packet *pkt)
{
    distributed_change(d, s, pkt);
    return distributed_keep(d, s, member, pkt) ? MR_RESTART_NUMBER : distributed_distributed_max(d, s, member, n, pkt);
}

MR_INLINE u64 distributed_kept_distributed_or(struct distributed *d, const struct shape *s, u64 member, u64 n,
                                              struct mr_packet *pkt)
{
    distributed_change(d, s, pkt);
    return distributed_keep(d, s, member, pkt) ? MR_RESTART_NUMBER : distributed_distributed_or(d, s, member, n, pkt);
}

#endif
