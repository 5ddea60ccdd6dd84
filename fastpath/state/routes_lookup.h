/* What routing answers a program: bpf_fib_lookup and bpf_check_mtu for XDP, as Linux 6.18 gives them
 * (net/core/filter.c), over the host's table instead of the kernel's.
 *
 * `fib_lookup(ctx, params, plen, flags)`: params is `struct bpf_fib_lookup`, 64 bytes (linux/bpf.h); the
 * offsets below are its fields. Results: BPF_FIB_LKUP_RET_*, or -EINVAL (plen below 64, unknown flags),
 * -EAFNOSUPPORT, -ENODEV (no such interface). What is written on the way to a result other than success
 * stays written, as in the kernel.
 *
 * Where it cannot be the same: which of several next hops a flow takes is a function of its addresses
 * alone, and not the kernel's, which depends on a secret. There are no routing rules: BPF_FIB_LOOKUP_MARK
 * has no effect, and lookups without BPF_FIB_LOOKUP_DIRECT ask the tables local and main.
 */
#ifndef MR_ROUTES_LOOKUP_H
#define MR_ROUTES_LOOKUP_H

#include "routes_table.h"

enum {
    FIB_SUCCESS,
    FIB_BLACKHOLE,
    FIB_UNREACHABLE,
    FIB_PROHIBIT,
    FIB_NOT_FORWARDED,
    FIB_FORWARDING_DISABLED,
    FIB_ENCAPSULATED,
    FIB_NO_NEIGHBOUR,
    FIB_TOO_LONG,
    FIB_NO_SOURCE,
};

enum {
    FIB_DIRECT = 1 << 0,
    FIB_OUTPUT = 1 << 1,
    FIB_SKIP_NEIGHBOUR = 1 << 2,
    FIB_TABLE = 1 << 3,
    FIB_SOURCE = 1 << 4,
    FIB_FLAGS = (1 << 6) - 1, /* BPF_FIB_LOOKUP_MARK is the last */
};

/* Offsets in struct bpf_fib_lookup. */
enum {
    FIB_AT_FAMILY = 0,
    FIB_AT_LENGTH = 6, /* in: tot_len; out: mtu_result */
    FIB_AT_IFINDEX = 8,
    FIB_AT_METRIC = 12,
    FIB_AT_FROM = 16,
    FIB_AT_TO = 32,
    FIB_AT_TABLE = 48, /* in: tbid; out: VLAN protocol and TCI */
    FIB_AT_OWN_MAC = 52,
    FIB_AT_NEXT_MAC = 58,
    FIB_BYTES = 64,
};

enum { FIB_AF_INET = 2, FIB_AF_INET6 = 10 };

#define FIB_ETH_HLEN 14
#define FIB_IPV6_MTU_MIN 1280u
#define FIB_IPV4_MTU_MAX 0xffffu
#define FIB_IPV6_MTU_MAX (0xffffu + 40)

/* An interface that exists because it is one of the run's ports, but of which the table says nothing. */
static const struct routes_port routes_bare_port = { .mtu = 1500, .mtu6 = 1500 };

MR_INLINE const struct routes_port *routes_interface(const struct routes *r, u32 ifindex, const struct mr_packet *pkt)
{
    if (ifindex - 1 < ROUTES_PORTS && r->port[ifindex - 1].known)
        return &r->port[ifindex - 1];
    return ifindex - 1 < pkt->ports ? &routes_bare_port : NULL;
}

/* Multicast ff00::/8, link-local fe80::/10 and ::1: never forwarded. */
MR_INLINE int routes_stays_on_link(const u8 *address)
{
    static const u8 loopback[16] = { [15] = 1 };

    return address[0] == 0xff || (address[0] == 0xfe && (address[1] & 0xc0) == 0x80) ||
           memcmp(address, loopback, 16) == 0;
}

MR_INLINE u64 routes_mix(u64 flow, u64 word)
{
    return mr_fold(flow ^ 0x9e3779b97f4a7c15ull, word ^ 0xbf58476d1ce4e5b9ull);
}

/* The hop that a flow takes: hops share the flows in proportion to their weights. */
MR_INLINE const struct routes_hop *routes_share(const struct routes *r, const struct routes_hop *first,
                                                u8 family, const u8 *params)
{
    u64 flow = 0, total = 0, at;

    if (first->next == MR_NONE)
        return first;
    if (family == 4)
        flow = routes_mix(flow, (u64)mr_load32(params + FIB_AT_TO) << 32 | mr_load32(params + FIB_AT_FROM));
    else
        for (u32 i = FIB_AT_FROM; i < FIB_AT_TABLE; i += 8)
            flow = routes_mix(flow, mr_load64(params + i));
    for (const struct routes_hop *h = first; h; h = routes_at(r, h->next))
        total += h->value.weight;
    at = (flow >> 32) * total >> 32;
    for (const struct routes_hop *h = first; h; h = routes_at(r, h->next)) {
        if (at < h->value.weight)
            return h;
        at -= h->value.weight;
    }
    return first;
}

/* The largest packet of a family that a route's hop takes. */
MR_INLINE u32 routes_mtu(const struct routes_hop *h, const struct routes_port *out, u8 family)
{
    u32 mtu = h->value.mtu;

    if (mtu)
        return mtu;
    if (family == 4)
        return out->mtu < FIB_IPV4_MTU_MAX ? out->mtu : FIB_IPV4_MTU_MAX;
    mtu = out->mtu6 > FIB_IPV6_MTU_MIN ? out->mtu6 : FIB_IPV6_MTU_MIN;
    return mtu < FIB_IPV6_MTU_MAX ? mtu : FIB_IPV6_MTU_MAX;
}

/* From the route's hop to the answer: what both families have in common. */
MR_INLINE u64 routes_answer(struct routes *r, const struct shape *s, const struct routes_hop *h, u8 family,
                            u8 *params, u32 flags, const struct mr_packet *pkt)
{
    const struct routes_port *out = routes_interface(r, h->value.ifindex, pkt);
    u8 next = h->value.via_family ? h->value.via_family : family;
    const u8 *mac;
    u32 mtu;

    if (!out)
        out = &routes_bare_port;
    mtu = routes_mtu(h, out, family);
    if (mr_load16(params + FIB_AT_LENGTH) > mtu) {
        mr_store16(params + FIB_AT_LENGTH, (u16)mtu);
        return FIB_TOO_LONG;
    }
    if (h->value.flags & ROUTES_ENCAPSULATED)
        return FIB_ENCAPSULATED;
    /* The kernel writes IPv6's gateway before the source, which may fail, and IPv4's after it; only
     * IPv6 has the failure, so one order serves both. */
    if (h->value.via_family)
        memcpy(params + FIB_AT_TO, h->value.via, next == 4 ? 4 : 16);
    mr_store32(params + FIB_AT_METRIC, h->value.metric);
    mr_store32(params + FIB_AT_IFINDEX, h->value.ifindex);
    if (flags & FIB_SOURCE) {
        if (family == 6 && h->value.source_family != 6)
            return FIB_NO_SOURCE;
        memcpy(params + FIB_AT_FROM, h->value.source, family == 4 ? 4 : 16);
    }
    if (next != family)
        params[FIB_AT_FAMILY] = FIB_AF_INET6;
    if (!(flags & FIB_SKIP_NEIGHBOUR)) {
        mac = routes_neighbour(r, s, next, h->value.ifindex, params + FIB_AT_TO);
        if (!mac)
            return FIB_NO_NEIGHBOUR;
        memcpy(params + FIB_AT_NEXT_MAC, mac, 6);
        memcpy(params + FIB_AT_OWN_MAC, out->mac, 6);
    }
    mr_store32(params + FIB_AT_TABLE, 0);
    if (mtu)
        mr_store16(params + FIB_AT_LENGTH, (u16)mtu);
    return FIB_SUCCESS;
}

MR_OUTLINE u64 routes_fib_lookup(struct routes *r, const struct shape *s, u8 *params, u64 plen, u64 flag_bits,
                                 struct mr_packet *pkt)
{
    const struct routes_hop *h = NULL;
    const struct routes_port *in;
    u32 flags = (u32)flag_bits, ifindex, out, table = ROUTES_MAIN;
    u8 family;

    if (plen < FIB_BYTES || flags & ~(u32)FIB_FLAGS)
        return mr_errno(EINVAL);
    if (params[FIB_AT_FAMILY] == FIB_AF_INET)
        family = 4;
    else if (params[FIB_AT_FAMILY] == FIB_AF_INET6)
        family = 6;
    else
        return mr_errno(EAFNOSUPPORT);
    if (family == 6 && (routes_stays_on_link(params + FIB_AT_TO) || routes_stays_on_link(params + FIB_AT_FROM)))
        return FIB_NOT_FORWARDED;
    ifindex = mr_load32(params + FIB_AT_IFINDEX);
    in = routes_interface(r, ifindex, pkt);
    if (!in)
        return mr_errno(ENODEV);
    if (!(in->flags & (family == 4 ? ROUTES_FORWARD_4 : ROUTES_FORWARD_6)))
        return FIB_FORWARDING_DISABLED;
    out = flags & FIB_OUTPUT ? ifindex : 0;
    if (flags & FIB_DIRECT) {
        if (flags & FIB_TABLE) {
            table = mr_load32(params + FIB_AT_TABLE);
            mr_store32(params + FIB_AT_TABLE, 0);
            table = table ? table : ROUTES_MAIN;
        }
    } else if (family == 6) {
        h = routes_find(r, s, family, ROUTES_LOCAL, params + FIB_AT_TO, out);
    }
    if (!h)
        h = routes_find(r, s, family, table, params + FIB_AT_TO, out);
    if (!h)
        return FIB_NOT_FORWARDED;
    switch (h->value.type) {
    case ROUTES_UNICAST:
        break;
    case ROUTES_BLACKHOLE:
        return FIB_BLACKHOLE;
    case ROUTES_UNREACHABLE:
        return FIB_UNREACHABLE;
    case ROUTES_PROHIBIT:
        return FIB_PROHIBIT;
    default:
        return FIB_NOT_FORWARDED;
    }
    if (!out)
        h = routes_share(r, h, family, params);
    else if (family == 6)
        for (const struct routes_hop *other = h; other; other = routes_at(r, other->next))
            if (other->value.ifindex == out) {
                h = other;
                break;
            }
    return routes_answer(r, s, h, family, params, flags, pkt);
}

/* `check_mtu(ctx, ifindex, mtu_len, len_diff, flags)`: 0 if the frame, or a packet of *mtu_len bytes
 * without its Ethernet header if that is not 0, would fit the interface after growing by len_diff; 1 if
 * not; -EINVAL for flags, -ENODEV. Interface index 0 is the one that the packet came in by. *mtu_len is
 * the interface's MTU afterwards, unless there was an error. */
MR_INLINE u64 routes_check_mtu(struct routes *r, const struct shape *s, u64 ifindex, u8 *mtu_len, u64 len_diff,
                               u64 flags, struct mr_packet *pkt)
{
    const struct routes_port *port;
    u32 length = (u32)(pkt->end - pkt->data);

    (void)s;
    if (flags)
        return mr_errno(EINVAL);
    port = routes_interface(r, (u32)ifindex ? (u32)ifindex : pkt->port + 1, pkt);
    if (!port)
        return mr_errno(ENODEV);
    if (mr_load32(mtu_len))
        length = mr_load32(mtu_len) + FIB_ETH_HLEN;
    length += (u32)len_diff;
    mr_store32(mtu_len, port->mtu);
    return (s32)length > (s32)(port->mtu + FIB_ETH_HLEN);
}

#endif
