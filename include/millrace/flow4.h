/* The 5-tuple of an IPv4 packet: a key of 16 bytes, for functions that know IPv4 alone. */
#ifndef MILLRACE_FLOW4_H
#define MILLRACE_FLOW4_H

#include <millrace/ethernet.h>
#include <millrace/transport.h>

/* Everything in network byte order; two words, no padding. */
struct flow4 {
	__be32 src;
	__be32 dst;
	__be16 sport;
	__be16 dport;
	__u8 protocol;
	__u8 zero[3];
};

/* Where the headers stand that the tuple was read from. */
struct flow4_headers {
	struct ipv4 *ip;          /* checked: 20 bytes */
	void *transport;          /* struct tcp, udp or icmp, whole */
	struct ipv4 *carried_ip;  /* of an error's packet: 20 bytes, unchecked … */
	void *carried_transport;  /* … and 8 bytes */
	__u32 carried_at;         /* offset of those 8 … */
	__u32 limit;              /* … and of the packet's end */
};

MILLRACE_INLINE enum flow_kind flow4_carried(const struct packet *p, __u32 at, __u32 limit,
					     struct flow4 *f, struct flow4_headers *headers)
{
	struct ipv4 *ip = packet_at(p, at, struct ipv4);
	struct ports ports;
	enum flow_kind kind;
	__u32 header;

	if (!ip || ip->version_ihl >> 4 != 4)
		return FLOW_BAD;
	header = ipv4_header_bytes(ip);
	if (header < sizeof(struct ipv4) || at + header > limit)
		return FLOW_BAD;
	if (ipv4_later_fragment(ip))
		return FLOW_FRAGMENT;
	kind = carried_ports_at(p, at + header, limit, ip->protocol, &ports,
				&headers->carried_transport);
	if (kind != FLOW_OWN)
		return kind;
	*f = (struct flow4){ ip->src, ip->dst, ports.sport, ports.dport, ip->protocol, {} };
	headers->carried_ip = ip;
	headers->carried_at = at + header;
	return FLOW_CARRIED;
}

/* The tuple of the IPv4 packet at an offset. `f` and `headers` are complete for FLOW_OWN and
 * FLOW_CARRIED; for all but FLOW_BAD and FLOW_NONE, headers->ip is set. */
MILLRACE_INLINE enum flow_kind flow4_at(const struct packet *p, __u32 at, struct flow4 *f,
					struct flow4_headers *headers)
{
	struct ipv4 *ip = ipv4_at(p, at);
	struct ports ports;
	enum flow_kind kind;
	__u32 transport;

	if (!ip)
		return FLOW_BAD;
	headers->ip = ip;
	headers->limit = at + ntohs(ip->length);
	if (ip->protocol != PROTOCOL_TCP && ip->protocol != PROTOCOL_UDP &&
	    ip->protocol != PROTOCOL_ICMP)
		return FLOW_NONE;
	if (ipv4_later_fragment(ip))
		return FLOW_FRAGMENT;
	transport = at + ipv4_header_bytes(ip);
	kind = ports_at(p, transport, headers->limit, ip->protocol, &ports, &headers->transport);
	if (kind == FLOW_CARRIED)
		return flow4_carried(p, transport + sizeof(struct icmp), headers->limit, f,
				     headers);
	if (kind == FLOW_OWN)
		*f = (struct flow4){ ip->src, ip->dst, ports.sport, ports.dport, ip->protocol,
				     {} };
	return kind;
}

/* The tuple of a packet, or why it has none. */
MILLRACE_INLINE enum flow_kind packet_find_flow4(const struct packet *p, struct flow4 *f,
						 struct flow4_headers *headers)
{
	__be16 type;
	__u32 at = packet_network(p, &type);

	if (!at || type != htons(ETHERTYPE_IPV4))
		return FLOW_NONE;
	return flow4_at(p, at, f, headers);
}

/* The tuple as the other side sees it. */
MILLRACE_INLINE void flow4_reverse(struct flow4 *f)
{
	*f = (struct flow4){ f->dst, f->src, f->dport, f->sport, f->protocol, {} };
}

#endif
