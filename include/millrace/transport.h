/* The ports of a transport header, and what a flow's packet can turn out to be. */
#ifndef MILLRACE_TRANSPORT_H
#define MILLRACE_TRANSPORT_H

#include <millrace/icmp.h>
#include <millrace/ipv4.h>
#include <millrace/tcp.h>
#include <millrace/udp.h>

enum flow_kind {
	FLOW_NONE = 0, /* not IP, or of no flow: another protocol, neighbour discovery … */
	FLOW_OWN,      /* TCP, UDP, or an ICMP echo */
	FLOW_CARRIED,  /* an ICMP error; the flow is that of the packet inside */
	FLOW_FRAGMENT, /* a later fragment: its ports are in the first */
	FLOW_BAD,      /* a header that is cut short or contradicts itself */
};

/* Source and destination port. An echo has an identifier instead: a request has it as its source
 * port, a reply as its destination port, and the other is 0, so that reversing a reply's flow gives
 * its request's. */
struct ports {
	__be16 sport;
	__be16 dport;
};

MILLRACE_INLINE enum flow_kind ports_of_echo(const struct icmp *icmp, _Bool request, _Bool reply,
					     struct ports *ports)
{
	if (request)
		*ports = (struct ports){ .sport = icmp->id };
	else if (reply)
		*ports = (struct ports){ .dport = icmp->id };
	else
		return FLOW_NONE;
	return FLOW_OWN;
}

/* The ports of a packet whose transport header stands at `at` and may reach to `limit`; FLOW_CARRIED
 * for an ICMP error, of whose ports nothing is said. `*header` is where it stands. A first fragment
 * that does not hold the whole header is malformed (RFC 1858). */
MILLRACE_INLINE enum flow_kind ports_at(const struct packet *p, __u32 at, __u32 limit,
					__u8 protocol, struct ports *ports, void **header)
{
	if (protocol == PROTOCOL_TCP) {
		struct tcp *tcp = packet_at(p, at, struct tcp);

		if (!tcp || at + tcp_header_bytes(tcp) > limit ||
		    tcp_header_bytes(tcp) < sizeof(struct tcp))
			return FLOW_BAD;
		*ports = (struct ports){ tcp->sport, tcp->dport };
		*header = tcp;
		return FLOW_OWN;
	}
	if (protocol == PROTOCOL_UDP) {
		struct udp *udp = packet_at(p, at, struct udp);

		if (!udp || at + sizeof(struct udp) > limit)
			return FLOW_BAD;
		*ports = (struct ports){ udp->sport, udp->dport };
		*header = udp;
		return FLOW_OWN;
	}
	if (protocol == PROTOCOL_ICMP || protocol == PROTOCOL_ICMPV6) {
		struct icmp *icmp = packet_at(p, at, struct icmp);
		_Bool v4 = protocol == PROTOCOL_ICMP;

		if (!icmp || at + sizeof(struct icmp) > limit)
			return FLOW_BAD;
		*header = icmp;
		if (v4 ? icmp_is_error(icmp->type) : icmpv6_is_error(icmp->type))
			return FLOW_CARRIED;
		return ports_of_echo(icmp, icmp->type == (v4 ? ICMP_ECHO : ICMPV6_ECHO),
				     icmp->type == (v4 ? ICMP_ECHO_REPLY : ICMPV6_ECHO_REPLY),
				     ports);
	}
	return FLOW_NONE;
}

/* The same for a packet inside an ICMP error, of which only the first eight bytes of the transport
 * header need be there (RFC 792). */
MILLRACE_INLINE enum flow_kind carried_ports_at(const struct packet *p, __u32 at, __u32 limit,
						__u8 protocol, struct ports *ports, void **header)
{
	struct icmp *first8 = packet_at(p, at, struct icmp);

	if (!first8 || at + sizeof(struct icmp) > limit)
		return FLOW_BAD;
	*header = first8;
	if (protocol == PROTOCOL_TCP || protocol == PROTOCOL_UDP) {
		*ports = (struct ports){ load16(first8), load16((__u8 *)first8 + 2) };
		return FLOW_OWN;
	}
	if (protocol == PROTOCOL_ICMP)
		return ports_of_echo(first8, first8->type == ICMP_ECHO,
				     first8->type == ICMP_ECHO_REPLY, ports);
	if (protocol == PROTOCOL_ICMPV6)
		return ports_of_echo(first8, first8->type == ICMPV6_ECHO,
				     first8->type == ICMPV6_ECHO_REPLY, ports);
	return FLOW_NONE;
}

#endif
