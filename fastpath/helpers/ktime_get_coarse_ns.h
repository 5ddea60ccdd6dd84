/* ktime_get_coarse_ns: the packet's time, ns. As fine as ktime_get_ns, because it costs no more. */
#ifndef MR_HELPER_KTIME_GET_COARSE_NS_H
#define MR_HELPER_KTIME_GET_COARSE_NS_H

#include "../base.h"

MR_INLINE u64 helper_ktime_get_coarse_ns(struct mr_packet *pkt) { return pkt->time; }

#endif
