/* IPv6 packets: those for us, and those that go on (RFC 8200; RFC 4443). */
#ifndef ROUTER_FORWARD6_H
#define ROUTER_FORWARD6_H

#include "discovery.h"

/* Echo requests come back as replies, of a fragmented one each fragment (as for IPv4). The addresses change
 * places, which the checksum does not notice. */
MILLRACE_INLINE int answer_echo6(const struct packet *p, const struct interface *interface, struct ipv6 *ip)
{
	struct ethernet *ethernet = packet_at(p, 0, struct ethernet);
	struct address src = address_from_ipv6(ip->src), dst = address_from_ipv6(ip->dst);
	__u32 at = MESSAGE_AT;
	struct icmp *icmp;
	_Bool first = 1;
	__u16 old;

	if (!ethernet)
		return DROP_BECAUSE(bad_header);
	if (ip->next == IPV6_FRAGMENT) {
		__u8 *fragment = packet_bytes(p, at, 8);

		if (!fragment)
			return DROP_BECAUSE(bad_header);
		if (fragment[0] != PROTOCOL_ICMPV6)
			return DROP_BECAUSE(no_service);
		first = !(ntohs(load16(fragment + 2)) >> 3);
		at += 8;
	}
	if (first) {
		icmp = packet_at(p, at, struct icmp);
		if (!icmp)
			return DROP_BECAUSE(bad_header);
		if (icmp->type != ICMPV6_ECHO)
			return DROP_BECAUSE(no_service);
		old = load16(icmp);
		icmp->type = ICMPV6_ECHO_REPLY;
		icmp->checksum = checksum_replace16(icmp->checksum, old, load16(icmp));
	}
	turn_frame(ethernet, ethernet->src, interface);
	store_address(ip->src, &dst);
	store_address(ip->dst, &src);
	ip->hop_limit = 64;
	return FORWARD(p->port);
}

/* A packet to an address of ours. */
MILLRACE_INLINE int to_us6(const struct packet *p, const struct interface *interface, struct ipv6 *ip)
{
	struct icmp *icmp = packet_at(p, MESSAGE_AT, struct icmp);

	if (ip->next == PROTOCOL_ICMPV6 && icmp &&
	    (icmp->type == NDP_SOLICITATION || icmp->type == NDP_ADVERTISEMENT))
		return on_message(p, interface, ip);
	if (ip->next == PROTOCOL_ICMPV6 || ip->next == IPV6_FRAGMENT)
		return answer_echo6(p, interface, ip);
	if (ip->next != PROTOCOL_UDP)
		return DROP_BECAUSE(no_service);
	return ERROR(ICMPV6_UNREACHABLE, 4, 0);
}

MILLRACE_INLINE int forward6(const struct packet *p, const struct interface *interface, struct ipv6 *ip)
{
	struct address dst = address_from_ipv6(ip->dst), src = address_from_ipv6(ip->src);
	struct route *route = lpm_get(&table, &dst);
	struct ethernet *ethernet;
	struct interface *out;
	__u16 mac[3] = {};
	struct hop hop;

	if (route && route->kind == ROUTE_LOCAL)
		return to_us6(p, interface, ip);
	/* Link-local addresses mean nothing elsewhere (RFC 4291, 2.5.6). */
	if (IS_LINK_LOCAL(src))
		return ERROR(ICMPV6_UNREACHABLE, 2, 0);
	if (!route || route->kind == ROUTE_NONE)
		return ERROR(ICMPV6_UNREACHABLE, 0, 0);
	if (ip->hop_limit < 2)
		return ERROR(ICMPV6_TIME_EXCEEDED, 0, 0);
	out = vector_at(&interfaces, route->port);
	if (!out || route->port >= p->ports)
		return DROP_BECAUSE(no_port);
	if (sizeof(struct ipv6) + ntohs(ip->length) > mtu_of(out))
		return ERROR(ICMPV6_TOO_BIG, 0, mtu_of(out));
	hop = (struct hop){ route->kind == ROUTE_VIA ? route->gateway : dst, route->port, 0 };
	switch (resolve(p, &hop, mac)) {
	case ASK:
		return ask6(p, &hop.address, hop.port, out);
	case WAIT:
		return DROP_BECAUSE(unresolved);
	case NO_ANSWER:
		return ERROR(ICMPV6_UNREACHABLE, 3, 0);
	case RESOLVED:
		break;
	}
	ethernet = packet_at(p, 0, struct ethernet);
	if (!ethernet)
		return DROP_BECAUSE(bad_header);
	ip->hop_limit--;
	turn_frame(ethernet, mac, out);
	return FORWARD(hop.port);
}

MILLRACE_INLINE int on_ipv6(const struct packet *p, const struct interface *interface, _Bool ours)
{
	struct ipv6 *ip = ipv6_at(p, NETWORK_AT);
	struct address src, dst;

	if (!ip)
		return DROP_BECAUSE(bad_header);
	if (IS_ZERO(interface->address6))
		return DROP_BECAUSE(no_address);
	src = address_from_ipv6(ip->src);
	dst = address_from_ipv6(ip->dst);
	/* No host sends from a group, from ::ffff:a.b.c.d or ::1; nor is anything there. */
	if (IS_GROUP6(src) || (!src.words[0] && src.words[1]) || !dst.words[0])
		return DROP_BECAUSE(martian);
	if (IS_GROUP6(dst)) {
		if (ip->next != PROTOCOL_ICMPV6)
			return DROP_BECAUSE(group);
		return on_message(p, interface, ip);
	}
	if (!ours)
		return DROP_BECAUSE(not_ours);
	if (is_ours6(interface, &dst))
		return to_us6(p, interface, ip);
	if (IS_ZERO(src))
		return DROP_BECAUSE(martian);
	if (IS_LINK_LOCAL(dst))
		return DROP_BECAUSE(not_ours);
	return forward6(p, interface, ip);
}

#endif
