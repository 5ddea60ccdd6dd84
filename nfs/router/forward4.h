/* IPv4 packets: those for us, and those that go on (RFC 1812, 5.2). */
#ifndef ROUTER_FORWARD4_H
#define ROUTER_FORWARD4_H

#include "resolve.h"

/* Echo requests to us come back as replies. Of a fragmented one each fragment does: the first has the type,
 * and the checksum covers all. */
MILLRACE_INLINE int answer_echo4(const struct packet *p, const struct interface *interface, struct ipv4 *ip)
{
	struct ethernet *ethernet = packet_at(p, 0, struct ethernet);
	__be32 to = ip->src;
	struct icmp *icmp;
	__u16 old;

	if (!ethernet)
		return DROP_BECAUSE(bad_header);
	if (!ipv4_later_fragment(ip)) {
		icmp = packet_at(p, NETWORK_AT + ipv4_header_bytes(ip), struct icmp);
		if (!icmp)
			return DROP_BECAUSE(bad_header);
		if (icmp->type != ICMP_ECHO)
			return DROP_BECAUSE(no_service);
		old = load16(icmp);
		icmp->type = ICMP_ECHO_REPLY;
		icmp->checksum = checksum_replace16(icmp->checksum, old, load16(icmp));
	}
	turn_frame(ethernet, ethernet->src, interface);
	ip->src = ip->dst;
	ip->dst = to;
	old = load16(&ip->ttl);
	ip->ttl = 64;
	ip->checksum = checksum_replace16(ip->checksum, old, load16(&ip->ttl));
	return FORWARD(p->port);
}

/* A packet to an address of ours. */
MILLRACE_INLINE int to_us4(const struct packet *p, const struct interface *interface, struct ipv4 *ip)
{
	if (ip->protocol == PROTOCOL_ICMP)
		return answer_echo4(p, interface, ip);
	if (ip->protocol == PROTOCOL_TCP)
		return DROP_BECAUSE(no_service);
	/* The end of a traceroute: no such port, or no such protocol. */
	return ERROR(ICMP_UNREACHABLE, ip->protocol == PROTOCOL_UDP ? 3 : 2, 0);
}

MILLRACE_INLINE int forward4(const struct packet *p, const struct interface *interface, struct ipv4 *ip)
{
	struct address dst = address_from_ipv4(ip->dst);
	struct route *route = lpm_get(&table, &dst);
	struct ethernet *ethernet;
	struct interface *out;
	__u16 mac[3] = {};
	struct hop hop;

	if (!route || route->kind == ROUTE_NONE)
		return ERROR(ICMP_UNREACHABLE, 0, 0);
	if (route->kind == ROUTE_LOCAL)
		return to_us4(p, interface, ip);
	if (route->kind == ROUTE_BROADCAST)
		return DROP_BECAUSE(broadcast);
	if (ip->ttl < 2)
		return ERROR(ICMP_TIME_EXCEEDED, 0, 0);
	out = vector_at(&interfaces, route->port);
	if (!out || route->port >= p->ports)
		return DROP_BECAUSE(no_port);
	/* One packet cannot become two here, so that is also said where fragments are allowed. */
	if (ntohs(ip->length) > mtu_of(out))
		return ERROR(ICMP_UNREACHABLE, 4, mtu_of(out));
	hop = (struct hop){ route->kind == ROUTE_VIA ? route->gateway : dst, route->port, 0 };
	switch (resolve(p, &hop, mac)) {
	case ASK:
		return ask4(p, hop.address.words[1] >> 32, hop.port, out);
	case WAIT:
		return DROP_BECAUSE(unresolved);
	case NO_ANSWER:
		return ERROR(ICMP_UNREACHABLE, 1, 0);
	case RESOLVED:
		break;
	}
	ethernet = packet_at(p, 0, struct ethernet);
	if (!ethernet)
		return DROP_BECAUSE(bad_header);
	ipv4_decrement_ttl(ip);
	turn_frame(ethernet, mac, out);
	return FORWARD(hop.port);
}

/* Whether an address names one host elsewhere: not "this network", a loop, or a group (RFC 1812, 5.3.7). */
MILLRACE_INLINE _Bool is_unicast4(__be32 address)
{
	__u32 first = ntohl(address) >> 24;

	return first != 0 && first != 127 && first < 224;
}

MILLRACE_INLINE int on_ipv4(const struct packet *p, const struct interface *interface)
{
	struct ipv4 *ip = ipv4_at(p, NETWORK_AT);

	if (!ip)
		return DROP_BECAUSE(bad_header);
	if (!interface->address)
		return DROP_BECAUSE(no_address);
	if (!is_unicast4(ip->src) || !is_unicast4(ip->dst))
		return DROP_BECAUSE(martian);
	return forward4(p, interface, ip);
}

#endif
