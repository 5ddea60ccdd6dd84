/* The 5-tuple of a packet of either IP version. */
#ifndef MILLRACE_FLOW_H
#define MILLRACE_FLOW_H

#include <millrace/flow4.h>
#include <millrace/ipv6.h>

/* Five words, no padding. The version keeps the two families apart whatever addresses they claim. */
struct flow {
	struct address src;
	struct address dst;
	union {
		struct {
			__be16 sport;
			__be16 dport;
		};
		__u32 ports; /* both at once */
	};
	__u8 protocol;
	__u8 version; /* 4 or 6 */
	__u8 zero[2];
};

/* What a map stores that only needs to know its keys: a word for the author's use. */
struct session {
	__u64 note;
};

/* All of the tuple but its ports. */
MILLRACE_LIBRARY void flow6_name_hosts(struct flow *f, const struct ipv6 *ip, __u8 protocol)
{
	f->src = address_from_ipv6(ip->src);
	f->dst = address_from_ipv6(ip->dst);
	f->protocol = protocol;
	f->version = 6;
	f->zero[0] = f->zero[1] = 0;
}

MILLRACE_LIBRARY enum flow_kind flow6_carried(const struct packet *p, __u32 at, __u32 limit,
					     struct flow *f)
{
	struct ipv6 *ip = packet_at(p, at, struct ipv6);
	struct ipv6_transport found;
	enum flow_kind kind;
	void *header;

	if (!ip || at + sizeof(struct ipv6) > limit ||
	    (ip->version_class_label & htonl(0xf0000000)) != htonl(0x60000000))
		return FLOW_BAD;
	found = ipv6_walk(p, at + sizeof(struct ipv6), ip->next, limit);
	if (!found.at)
		return FLOW_BAD;
	if (found.later)
		return FLOW_FRAGMENT;
	flow6_name_hosts(f, ip, found.protocol);
	kind = carried_ports_at(p, found.at, limit, found.protocol, &f->ports, &header);
	return kind == FLOW_OWN ? FLOW_CARRIED : kind;
}

MILLRACE_LIBRARY enum flow_kind flow6_at(const struct packet *p, __u32 at, struct flow *f,
					_Bool inside)
{
	struct ipv6 *ip = ipv6_at(p, at);
	struct transport transport;
	struct ipv6_transport found;
	enum flow_kind kind;
	__u32 limit;

	if (!ip)
		return FLOW_BAD;
	limit = at + sizeof(struct ipv6) + ntohs(ip->length);
	found = ipv6_walk(p, at + sizeof(struct ipv6), ip->next, limit);
	if (!found.at)
		return FLOW_BAD;
	if (found.later)
		return FLOW_FRAGMENT;
	if (found.protocol == PROTOCOL_ICMP)
		return FLOW_NONE;
	flow6_name_hosts(f, ip, found.protocol);
	kind = ports_at(p, found.at, limit, found.protocol, &f->ports,
			&transport);
	if (kind == FLOW_CARRIED && inside)
		return flow6_carried(p, found.at + sizeof(struct icmp), limit, f);
	return kind;
}

MILLRACE_LIBRARY enum flow_kind flow_at(const struct packet *p, struct flow *f, _Bool inside)
{
	__be16 type;
	__u32 at;

	MILLRACE_IN_MEMORY(f);
	at = packet_network(p, &type);
	if (!at)
		return FLOW_NONE;
	if (type == htons(ETHERTYPE_IPV4)) {
		struct flow4_headers headers;
		struct flow4 four;
		enum flow_kind kind = flow4_at(p, at, &four, &headers, inside);

		if (kind != FLOW_OWN && !(inside && kind == FLOW_CARRIED))
			return kind;
		*f = (struct flow){
				.src = address_from_ipv4(four.src),
				.dst = address_from_ipv4(four.dst),
				.ports = four.ports,
				.protocol = four.protocol,
				.version = 4,
			};
		return kind;
	}
	if (type == htons(ETHERTYPE_IPV6))
		return flow6_at(p, at, f, inside);
	return FLOW_NONE;
}

/* The tuple of a packet, or why it has none; `*f` is complete for FLOW_OWN and FLOW_CARRIED. */
MILLRACE_LIBRARY enum flow_kind packet_find_flow(const struct packet *p, struct flow *f)
{
	return flow_at(p, f, 1);
}

/* Whether the packet belongs to a flow by itself, which is then in `*f`. For functions that need not
 * tell fragments, errors and broken headers from what is no flow at all. */
MILLRACE_LIBRARY _Bool packet_flow(const struct packet *p, struct flow *f)
{
	return flow_at(p, f, 0) == FLOW_OWN;
}

/* The packet's transport header, by its `protocol` a whole struct tcp, udp or icmp; protocol 0 if there is none here
 * (no IP, another protocol, a later fragment, a broken header). struct tcp *tcp = packet_tcp(p); is shorter. */
MILLRACE_LIBRARY struct transport packet_transport(const struct packet *p)
{
	struct transport transport = { (void *)0, 0 };
	__u32 at, limit, ports;
	__u8 protocol;
	__be16 type;

	/* The packet's bounds are read anew. clang would keep those that packet_flow has read, as the 32-bit numbers that
	 * they are declared as, and a pointer of which half was kept cannot be followed. */
	__asm__("" : "+r"(p));
	at = packet_network(p, &type);
	if (!at)
		return transport;
	if (type == htons(ETHERTYPE_IPV4)) {
		struct ipv4 *ip = ipv4_at(p, at);

		if (!ip || ipv4_later_fragment(ip))
			return transport;
		protocol = ip->protocol;
		limit = at + ntohs(ip->length);
		at += ipv4_header_bytes(ip);
		if (protocol == PROTOCOL_ICMPV6)
			return transport;
	} else if (type == htons(ETHERTYPE_IPV6)) {
		struct ipv6 *ip = ipv6_at(p, at);
		struct ipv6_transport found;

		if (!ip)
			return transport;
		limit = at + sizeof(struct ipv6) + ntohs(ip->length);
		found = ipv6_walk(p, at + sizeof(struct ipv6), ip->next, limit);
		if (!found.at || found.later || found.protocol == PROTOCOL_ICMP)
			return transport;
		protocol = found.protocol;
		at = found.at;
	} else {
		return transport;
	}
	if (ports_at(p, at, limit, protocol, &ports, &transport) == FLOW_BAD)
		return (struct transport){ (void *)0, 0 };
	return transport;
}

/* The packet's TCP header, or NULL when it has none. */
MILLRACE_LIBRARY struct tcp *packet_tcp(const struct packet *p)
{
	struct transport transport = packet_transport(p);

	return transport.protocol == PROTOCOL_TCP ? transport.header : (void *)0;
}

/* The tuple as the other side sees it. */
MILLRACE_LIBRARY void flow_reverse(struct flow *f)
{
	struct address src = f->src;

	f->src = f->dst;
	f->dst = src;
	f->ports = PORTS_REVERSED(f->ports);
}

#endif
