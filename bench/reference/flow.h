/* The key of functions that tell flows of either IP version apart. */
#ifndef REFERENCE_FLOW_H
#define REFERENCE_FLOW_H

#include "reference.h"

/* The 5-tuple of an IPv4 TCP or UDP packet as nfs/ keys it: five words. */
MR_INLINE int flow(const struct mr_packet *pkt, int reverse, u64 *key)
{
    u16 type;
    u32 header, at = network(pkt, &type);
    const u8 *ip, *transport;
    u32 ports;
    u64 src, dst;

    if (!at || type != BE16(0x0800))
        return 0;
    ip = ipv4(pkt, at, &header);
    if (!ip || (ip[9] != 6 && ip[9] != 17) || mr_load16(ip + 6) & BE16(0x1fff))
        return 0;
    transport = ip + header;
    const u8 *end = ip + BE16(mr_load16(ip + 2));
    if (ip[9] == 6) {
        if (transport + 20 > pkt->end || transport + (transport[12] >> 4) * 4u > end ||
            transport[12] >> 4 < 5)
            return 0;
    } else if (transport + 8 > pkt->end || transport + 8 > end) {
        return 0;
    }
    src = (u64)mr_load32(ip + 12) << 32 | 0xffff0000;
    dst = (u64)mr_load32(ip + 16) << 32 | 0xffff0000;
    ports = mr_load32(transport);
    key[0] = 0;
    key[1] = reverse ? dst : src;
    key[2] = 0;
    key[3] = reverse ? src : dst;
    key[4] = (reverse ? ports >> 16 | ports << 16 : ports) | (u64)ip[9] << 32 | 4ull << 40;
    return 1;
}

#endif
