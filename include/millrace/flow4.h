/* The 5-tuple of an IPv4 packet: a key of 16 bytes, for functions that know IPv4 alone. */
#ifndef MILLRACE_FLOW4_H
#define MILLRACE_FLOW4_H

#include <millrace/ethernet.h>
#include <millrace/transport.h>

/* Everything in network byte order; two words, no padding. */
struct flow4 {
	__be32 src;
	__be32 dst;
	union {
		struct {
			__be16 sport;
			__be16 dport;
		};
		__u32 ports; /* both at once */
	};
	__u8 protocol;
	__u8 zero[3];
};

/* Where the headers stand that the tuple was read from. */
struct flow4_headers {
	struct ipv4 *ip; /* checked: 20 bytes */
	struct transport transport;
	struct ipv4 *carried_ip; /* of an error's packet: 20 bytes, unchecked … */
	void *carried_transport; /* … and 8 bytes of the header that follows … */
	__u32 carried_at;        /* … at this offset */
	__u32 limit;             /* offset of the packet's end */
};

/* All of the tuple but its ports. */
MILLRACE_LIBRARY void flow4_name_hosts(struct flow4 *f, const struct ipv4 *ip)
{
	f->src = ip->src;
	f->dst = ip->dst;
	f->protocol = ip->protocol;
	f->zero[0] = f->zero[1] = f->zero[2] = 0;
}

MILLRACE_LIBRARY enum flow_kind flow4_carried(const struct packet *p, __u32 at, __u32 limit,
					     struct flow4 *f, struct flow4_headers *headers)
{
	struct ipv4 *ip = packet_at(p, at, struct ipv4);
	enum flow_kind kind;
	__u32 header;

	if (!ip || ip->version_ihl >> 4 != 4)
		return FLOW_BAD;
	header = ipv4_header_bytes(ip);
	if (header < sizeof(struct ipv4) || at + header > limit)
		return FLOW_BAD;
	if (ipv4_later_fragment(ip))
		return FLOW_FRAGMENT;
	flow4_name_hosts(f, ip);
	headers->carried_ip = ip;
	headers->carried_at = at + header;
	kind = carried_ports_at(p, at + header, limit, ip->protocol, &f->ports,
				&headers->carried_transport);
	return kind == FLOW_OWN ? FLOW_CARRIED : kind;
}

/* The tuple of the IPv4 packet at an offset; complete, with its headers, for FLOW_OWN and, if errors are
 * to be looked `inside`, for FLOW_CARRIED. */
MILLRACE_LIBRARY enum flow_kind flow4_at(const struct packet *p, __u32 at, struct flow4 *f,
					struct flow4_headers *headers, _Bool inside)
{
	__u32 transport, limit;
	enum flow_kind kind;
	struct ipv4 *ip;
	__u8 protocol;

	MILLRACE_IN_MEMORY(f);
	MILLRACE_IN_MEMORY(headers);
	ip = ipv4_at(p, at);
	if (!ip)
		return FLOW_BAD;
	/* All that is needed of the header, before the first store: after it clang reads again. */
	protocol = ip->protocol;
	transport = at + ipv4_header_bytes(ip);
	limit = at + ntohs(ip->length);
	if (protocol != PROTOCOL_TCP && protocol != PROTOCOL_UDP && protocol != PROTOCOL_ICMP)
		return FLOW_NONE;
	if (ipv4_later_fragment(ip))
		return FLOW_FRAGMENT;
	flow4_name_hosts(f, ip);
	headers->ip = ip;
	headers->limit = limit;
	kind = ports_at(p, transport, limit, protocol, &f->ports, &headers->transport);
	if (kind == FLOW_CARRIED && inside)
		return flow4_carried(p, transport + sizeof(struct icmp), limit, f, headers);
	return kind;
}

/* The tuple of a packet, or why it has none. */
MILLRACE_LIBRARY enum flow_kind packet_find_flow4(const struct packet *p, struct flow4 *f,
						 struct flow4_headers *headers)
{
	__be16 type;
	__u32 at = packet_network(p, &type);

	if (!at || type != htons(ETHERTYPE_IPV4))
		return FLOW_NONE;
	return flow4_at(p, at, f, headers, 1);
}

/* The tuple as the other side sees it. */
MILLRACE_LIBRARY void flow4_reverse(struct flow4 *f)
{
	__be32 src = f->src;

	f->src = f->dst;
	f->dst = src;
	f->ports = PORTS_REVERSED(f->ports);
}

#endif
