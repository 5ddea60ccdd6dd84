/* tcp_raw_gen_syncookie_ipv4: syncookie.h. */
#ifndef MR_HELPER_TCP_RAW_GEN_SYNCOOKIE_IPV4_H
#define MR_HELPER_TCP_RAW_GEN_SYNCOOKIE_IPV4_H

#include "syncookie.h"

MR_INLINE u64 helper_tcp_raw_gen_syncookie_ipv4(u8 *ip, u8 *tcp, u64 length, u64 seed, struct mr_packet *pkt)
{
    return syncookie_make(seed, ip, 0, tcp, length, pkt);
}

#endif
