/* tcp_raw_check_syncookie_ipv4: syncookie.h. */
#ifndef MR_HELPER_TCP_RAW_CHECK_SYNCOOKIE_IPV4_H
#define MR_HELPER_TCP_RAW_CHECK_SYNCOOKIE_IPV4_H

#include "syncookie.h"

MR_INLINE u64 helper_tcp_raw_check_syncookie_ipv4(u8 *ip, u8 *tcp, u64 seed, struct mr_packet *pkt)
{
    return syncookie_check(seed, ip, 0, tcp, pkt);
}

#endif
