/* ktime_get_tai_ns: the packet's time, ns, as where the offset of atomic time was never set. */
#ifndef MR_HELPER_KTIME_GET_TAI_NS_H
#define MR_HELPER_KTIME_GET_TAI_NS_H

#include "../base.h"

MR_INLINE u64 helper_ktime_get_tai_ns(struct mr_packet *pkt) { return pkt->time; }

#endif
