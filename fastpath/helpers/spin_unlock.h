/* spin_unlock: one thread owns an instance, so that there is nobody to wait for. */
#ifndef MR_HELPER_SPIN_UNLOCK_H
#define MR_HELPER_SPIN_UNLOCK_H

#include "../base.h"

MR_INLINE u64 helper_spin_unlock(u8 *lock, struct mr_packet *pkt)
{
    (void)lock;
    (void)pkt;
    return 0;
}

#endif
