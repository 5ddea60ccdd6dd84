/* Neighbour discovery (RFC 4861): the part of ARP for IPv6. */
#ifndef ROUTER_DISCOVERY_H
#define ROUTER_DISCOVERY_H

#include "resolve.h"

#define MESSAGE_AT   (NETWORK_AT + (__u32)sizeof(struct ipv6))
#define MESSAGE      (sizeof(struct ndp) + sizeof(struct ndp_option))
#define NDP_FRAME    (MESSAGE_AT + MESSAGE)
#define IS_GROUP6(a) (((a).words[0] & 0xff) == 0xff)

/* ff02::1, and ff02::1:ff00:0 with the last three bytes of an address (RFC 4291, 2.7.1). */
#define ALL_NODES ((struct address){ { htons(0xff02), 1ull << 56 } })
#define SOLICITED(a) ((struct address){ { htons(0xff02), 0x000000ff01000000ull | ((a).words[1] & ~0ull << 40) } })

MILLRACE_INLINE _Bool is_ours6(const struct interface *interface, const struct address *address)
{
	struct address own = link_local(interface);

	return SAME(*address, interface->address6) || SAME(*address, own);
}

/* Makes the frame a message about a target, with an Ethernet address of ours. */
MILLRACE_INLINE int write_message(const struct packet *p, const struct interface *interface,
				  const struct address *src, const struct address *dst, const __u16 *station,
				  __u8 type, __u32 flags, const struct address *target)
{
	struct ethernet *ethernet;
	struct ndp_option *option;
	struct ipv6 *ip;
	struct ndp *ndp;

	if (!packet_renew(p, NDP_FRAME))
		return 0;
	ethernet = packet_at(p, 0, struct ethernet);
	ip = packet_at(p, NETWORK_AT, struct ipv6);
	ndp = packet_at(p, MESSAGE_AT, struct ndp);
	option = packet_at(p, MESSAGE_AT + sizeof(struct ndp), struct ndp_option);
	if (!ethernet || !ip || !ndp || !option)
		return 0;
	turn_frame(ethernet, station, interface);
	ethernet->type = htons(ETHERTYPE_IPV6);
	write_ipv6(ip, MESSAGE, 255, src, dst);
	ndp->type = type;
	ndp->code = 0;
	ndp->checksum = 0;
	ndp->flags = htonl(flags);
	store_address(ndp->target, target);
	option->type = type == NDP_SOLICITATION ? NDP_SOURCE : NDP_TARGET;
	option->length = 1;
	copy_mac(option->mac, interface->mac);
	ndp->checksum = ~checksum_fold(icmpv6_sum(p, MESSAGE_AT, MESSAGE));
	return 1;
}

/* A message that came to us, or to the group of an address of ours. */
MILLRACE_INLINE int on_message(const struct packet *p, const struct interface *interface, struct ipv6 *ip)
{
	struct ethernet *ethernet = packet_at(p, 0, struct ethernet);
	struct ndp *ndp = ndp_at(p, MESSAGE_AT, ip);
	struct address src, target, to;
	struct ndp_option *option;
	__u16 station[3];
	_Bool asks;

	if (!ethernet || !ndp)
		return DROP_BECAUSE(bad_header);
	src = address_from_ipv6(ip->src);
	target = address_from_ipv6(ndp->target);
	asks = ndp->type == NDP_SOLICITATION;
	option = ndp_option_of(p, MESSAGE_AT, ip, asks ? NDP_SOURCE : NDP_TARGET);
	if (asks && !is_ours6(interface, &target))
		return DROP_BECAUSE(not_ours);
	if (option && !IS_ZERO(src))
		learn(p, asks ? &src : &target, option->mac);
	if (!asks)
		return CONSUME;
	copy_mac(station, ethernet->src);
	/* Who has no address yet asks whether it may have ours (RFC 4862, 5.4): all are told. */
	to = src;
	if (IS_ZERO(src)) {
		to = ALL_NODES;
		copy_mac(station, (const __u16[3]){ 0x3333, 0, 0x0100 });
	}
	return write_message(p, interface, &target, &to, station, NDP_ADVERTISEMENT,
			     NDP_ROUTER | NDP_OVERRIDE | (IS_ZERO(src) ? 0 : NDP_SOLICITED), &target) ?
		       FORWARD(p->port) :
		       DROP_BECAUSE(no_room);
}

/* Makes the packet the question where `address` is. */
MILLRACE_INLINE int ask6(const struct packet *p, const struct address *address, __u32 port,
			 const struct interface *out)
{
	struct address from = link_local(out), to = SOLICITED(*address);
	__u16 station[3] = { 0x3333, 0xff | (__u16)(to.words[1] >> 40 & 0xff) << 8, to.words[1] >> 48 };

	return write_message(p, out, &from, &to, station, NDP_SOLICITATION, 0, address) ?
		       FORWARD(port) :
		       DROP_BECAUSE(no_room);
}

#endif
