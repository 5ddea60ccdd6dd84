/* jiffies64: the packet's time in jiffies of 4 ms, the kernel's CONFIG_HZ=250. */
#ifndef MR_HELPER_JIFFIES64_H
#define MR_HELPER_JIFFIES64_H

#include "../base.h"

MR_INLINE u64 helper_jiffies64(struct mr_packet *pkt) { return pkt->time / 4000000; }

#endif
