/* The key of functions that tell flows of either IP version apart: five words, as nfs/ keys them. */
#ifndef REFERENCE_FLOW_H
#define REFERENCE_FLOW_H

#include "reference.h"

enum kind {
    NONE,     /* of no flow */
    OWN,      /* TCP, UDP or an ICMP echo */
    CARRIED,  /* an ICMP error: the flow is that of the packet inside */
    FRAGMENT, /* a later fragment */
    BAD,      /* cut short, or contradicts itself */
};

/* What an ICMP message is, by its type and IP version. */
MR_INLINE int is_error(int version, u8 type)
{
    if (version == 6)
        return type >= 1 && type <= 4;
    return type == 3 || type == 4 || type == 5 || type == 11 || type == 12;
}

MR_INLINE enum kind echo_ports(int version, const u8 *icmp, u32 *ports)
{
    u32 id = mr_load16(icmp + 4);

    if (icmp[0] == (version == 6 ? 128 : 8))
        *ports = id;
    else if (icmp[0] == (version == 6 ? 129 : 0))
        *ports = id << 16;
    else
        return NONE;
    return OWN;
}

/* The ports in a transport header that may reach to `end`. */
MR_INLINE enum kind ports_at(const struct mr_packet *pkt, int version, const u8 *header, const u8 *end,
                             u8 protocol, u32 *ports)
{
    u32 bytes;

    switch (protocol) {
    case 6:
        if (header + 20 > pkt->end)
            return BAD;
        bytes = (header[12] >> 4) * 4u;
        if (bytes < 20 || header + bytes > end)
            return BAD;
        *ports = mr_load32(header);
        return OWN;
    case 17:
        if (header + 8 > pkt->end || header + 8 > end)
            return BAD;
        *ports = mr_load32(header);
        return OWN;
    case 1:
    case 58:
        if ((protocol == 58) != (version == 6))
            return NONE;
        if (header + 8 > pkt->end || header + 8 > end)
            return BAD;
        return is_error(version, header[0]) ? CARRIED : echo_ports(version, header, ports);
    default:
        return NONE;
    }
}

/* The same inside an ICMP error, which need hold only eight bytes of the header. */
static enum kind carried_ports(const struct mr_packet *pkt, const u8 *header, const u8 *end, u8 protocol,
                               u32 *ports)
{
    int version = protocol == 58 ? 6 : 4; /* the number alone says which ICMP it is */

    if (header + 8 > pkt->end || header + 8 > end)
        return BAD;
    if (protocol == 6 || protocol == 17) {
        *ports = mr_load32(header);
        return CARRIED;
    }
    if (protocol != 1 && protocol != 58)
        return NONE;
    if (is_error(version, header[0]))
        return BAD;
    return echo_ports(version, header, ports) == OWN ? CARRIED : NONE;
}

MR_INLINE void key4(u64 *key, const u8 *ip, u32 ports, int reverse)
{
    u64 src = (u64)mr_load32(ip + 12) << 32 | 0xffff0000;
    u64 dst = (u64)mr_load32(ip + 16) << 32 | 0xffff0000;

    key[0] = 0;
    key[1] = reverse ? dst : src;
    key[2] = 0;
    key[3] = reverse ? src : dst;
    key[4] = (reverse ? ports >> 16 | ports << 16 : ports) | (u64)ip[9] << 32 | 4ull << 40;
}

MR_INLINE void key6(u64 *key, const u8 *ip, u8 protocol, u32 ports, int reverse)
{
    const u8 *src = ip + 8, *dst = ip + 24;

    key[0] = mr_load64(reverse ? dst : src);
    key[1] = mr_load64((reverse ? dst : src) + 8);
    key[2] = mr_load64(reverse ? src : dst);
    key[3] = mr_load64((reverse ? src : dst) + 8);
    key[4] = (reverse ? ports >> 16 | ports << 16 : ports) | (u64)protocol << 32 | 6ull << 40;
}

static enum kind carried4(const struct mr_packet *pkt, const u8 *ip, const u8 *end, u64 *key)
{
    u32 header, ports = 0;
    enum kind kind;

    if (ip + 20 > pkt->end || ip[0] >> 4 != 4)
        return BAD;
    header = (ip[0] & 15) * 4u;
    if (header < 20 || ip + header > end)
        return BAD;
    if (mr_load16(ip + 6) & BE16(0x1fff))
        return FRAGMENT;
    kind = carried_ports(pkt, ip + header, end, ip[9], &ports);
    key4(key, ip, ports, 0);
    return kind;
}

MR_INLINE enum kind flow4(const struct mr_packet *pkt, u32 at, int reverse, u64 *key)
{
    u32 header, ports = 0;
    const u8 *ip = ipv4(pkt, at, &header), *end;
    enum kind kind;

    if (!ip)
        return BAD;
    if (ip[9] != 6 && ip[9] != 17 && ip[9] != 1)
        return NONE;
    if (mr_load16(ip + 6) & BE16(0x1fff))
        return FRAGMENT;
    end = ip + BE16(mr_load16(ip + 2));
    kind = ports_at(pkt, 4, ip + header, end, ip[9], &ports);
    if (kind == CARRIED)
        return carried4(pkt, ip + header + 8, end, key);
    if (kind == OWN)
        key4(key, ip, ports, reverse);
    return kind;
}

/* Past the extension headers, at most eight: OWN with the transport header and its number. */
static enum kind walk(const struct mr_packet *pkt, const u8 **header, u8 *next, const u8 *end)
{
    const u8 *at = *header;

    for (int passed = 0; passed <= 8; passed++) {
        u32 bytes;

        if (*next != 0 && *next != 43 && *next != 44 && *next != 51 && *next != 60) {
            *header = at;
            return OWN;
        }
        if (at + 8 > pkt->end || at + 8 > end)
            return BAD;
        if (*next == 44 && BE16(mr_load16(at + 2)) >> 3)
            return FRAGMENT;
        if (*next == 44)
            bytes = 8;
        else if (*next == 51)
            bytes = (at[1] + 2) * 4u;
        else
            bytes = (at[1] + 1) * 8u;
        *next = at[0];
        at += bytes;
        if (at > end)
            return BAD;
    }
    return BAD;
}

static enum kind carried6(const struct mr_packet *pkt, const u8 *ip, const u8 *end, u64 *key)
{
    const u8 *header = ip + 40;
    u32 ports = 0;
    enum kind kind;
    u8 next;

    if (ip + 40 > pkt->end || ip + 40 > end || ip[0] >> 4 != 6)
        return BAD;
    next = ip[6];
    kind = walk(pkt, &header, &next, end);
    if (kind != OWN)
        return kind;
    kind = carried_ports(pkt, header, end, next, &ports);
    key6(key, ip, next, ports, 0);
    return kind;
}

static enum kind flow6(const struct mr_packet *pkt, u32 at, int reverse, u64 *key)
{
    const u8 *ip = pkt->data + at, *header = ip + 40, *end;
    u32 ports = 0;
    enum kind kind;
    u8 next;

    if (header > pkt->end || ip[0] >> 4 != 6)
        return BAD;
    end = header + BE16(mr_load16(ip + 4));
    if (end > pkt->end)
        return BAD;
    next = ip[6];
    kind = walk(pkt, &header, &next, end);
    if (kind != OWN)
        return kind;
    kind = ports_at(pkt, 6, header, end, next, &ports);
    if (kind == CARRIED)
        return carried6(pkt, header + 8, end, key);
    if (kind == OWN)
        key6(key, ip, next, ports, reverse);
    return kind;
}

/* The 5-tuple of a packet, reversed if wanted, or of the packet inside an ICMP error, as it stands. Set
 * for OWN and CARRIED. */
MR_INLINE enum kind flow(const struct mr_packet *pkt, int reverse, u64 *key)
{
    u16 type;
    u32 at = network(pkt, &type);

    if (at && type == BE16(0x0800))
        return flow4(pkt, at, reverse, key);
    if (at && type == BE16(0x86dd))
        return flow6(pkt, at, reverse, key);
    return NONE;
}

#endif
