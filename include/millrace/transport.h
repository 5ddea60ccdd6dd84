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

/* A transport header: `protocol` says how much of it is there, a whole struct tcp, udp or icmp. It is
 * to be asked instead of the IP header, whose protocol could be another when it is read again. */
struct transport {
	void *header;
	__u32 protocol;
};

/* Source and destination port in one word, as they lie in a header: one load, one store. */
#define PORTS_OF(sport, dport) ((__u32)(sport) | (__u32)(dport) << 16)
#define PORTS_REVERSED(ports)  ((ports) << 16 | (ports) >> 16)

/* An echo has an identifier instead of ports: a request has it as its source port, a reply as its
 * destination port, and the other is 0, so that reversing a reply's flow gives its request's. */
MILLRACE_LIBRARY enum flow_kind ports_of_echo(const struct icmp *icmp, _Bool request, _Bool reply,
					     __u32 *ports)
{
	if (!request && !reply)
		return FLOW_NONE;
	*ports = request ? PORTS_OF(icmp->id, 0) : PORTS_OF(0, icmp->id);
	return FLOW_OWN;
}

/* The ports of a packet whose transport header stands at `at` and may reach to `limit`; FLOW_CARRIED
 * for an ICMP error, of whose ports nothing is said. A first fragment that does not hold the whole
 * header is malformed (RFC 1858). */
MILLRACE_LIBRARY enum flow_kind ports_at(const struct packet *p, __u32 at, __u32 limit,
					__u8 protocol, __u32 *ports,
					struct transport *transport)
{
	_Bool v4 = protocol == PROTOCOL_ICMP;

	if (protocol == PROTOCOL_TCP) {
		struct tcp *tcp = packet_at(p, at, struct tcp);

		if (!tcp || at + tcp_header_bytes(tcp) > limit ||
		    tcp_header_bytes(tcp) < sizeof(struct tcp))
			return FLOW_BAD;
		*ports = load32(tcp);
		*transport = (struct transport){ tcp, PROTOCOL_TCP };
		return FLOW_OWN;
	}
	if (protocol == PROTOCOL_UDP) {
		struct udp *udp = packet_at(p, at, struct udp);

		if (!udp || at + sizeof(struct udp) > limit)
			return FLOW_BAD;
		*ports = load32(udp);
		*transport = (struct transport){ udp, PROTOCOL_UDP };
		return FLOW_OWN;
	}
	if (v4 || protocol == PROTOCOL_ICMPV6) {
		struct icmp *icmp = packet_at(p, at, struct icmp);

		if (!icmp || at + sizeof(struct icmp) > limit)
			return FLOW_BAD;
		*transport = (struct transport){ icmp, PROTOCOL_ICMP };
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
MILLRACE_LIBRARY enum flow_kind carried_ports_at(const struct packet *p, __u32 at, __u32 limit,
						__u8 protocol, __u32 *ports,
						void **header)
{
	struct icmp *first8 = packet_at(p, at, struct icmp);
	_Bool v4 = protocol == PROTOCOL_ICMP;

	if (!first8 || at + sizeof(struct icmp) > limit)
		return FLOW_BAD;
	*header = first8;
	if (protocol == PROTOCOL_TCP || protocol == PROTOCOL_UDP) {
		*ports = load32(first8);
		return FLOW_OWN;
	}
	if (!v4 && protocol != PROTOCOL_ICMPV6)
		return FLOW_NONE;
	/* Nobody answers an error with an error (RFC 1122, 3.2.2; RFC 4443, 2.4). */
	if (v4 ? icmp_is_error(first8->type) : icmpv6_is_error(first8->type))
		return FLOW_BAD;
	return ports_of_echo(first8, first8->type == (v4 ? ICMP_ECHO : ICMPV6_ECHO),
			     first8->type == (v4 ? ICMP_ECHO_REPLY : ICMPV6_ECHO_REPLY), ports);
}

#endif
