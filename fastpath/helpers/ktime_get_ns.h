/* ktime_get_ns: the packet's time, ns. The kernel's clock starts at boot, this one at the epoch: programs
 * may only compare times with each other. */
#ifndef MR_HELPER_KTIME_GET_NS_H
#define MR_HELPER_KTIME_GET_NS_H

#include "../base.h"

MR_INLINE u64 helper_ktime_get_ns(struct mr_packet *pkt) { return pkt->time; }

#endif
