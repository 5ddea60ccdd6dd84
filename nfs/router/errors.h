/* ICMP and ICMPv6 errors: the packet that they are about becomes one (RFC 1812, 4.3; RFC 4443, 2.4 and 3). */
#ifndef ROUTER_ERRORS_H
#define ROUTER_ERRORS_H

#include "tables.h"

PARAM(__u32, errors_a_second, 100); /* of a port; 0: none are sent */

/* Errors that a port may send at once after a pause. */
#define ERRORS_AT_ONCE 32

/* What a handler returns instead of a verdict: the packet shall become this error. A next hop takes `mtu` bytes, of
 * packets that are too big. */
#define ERROR(type, code, mtu) ((int)(0x80000000u | (__u32)(type) << 20 | (code) << 16 | (mtu)))
#define IS_ERROR(verdict)      ((verdict) < 0)
#define ERROR_TYPE(error)      ((__u32)(error) >> 20 & 0xff)
#define ERROR_CODE(error)      ((__u32)(error) >> 16 & 0xf)
#define ERROR_MTU(error)       ((__u32)(error) & 0xffff)

/* When the next error of a port is due, if they are sent evenly (the virtual scheduling algorithm, ITU-T
 * I.371, annex A). */
VECTOR(due, __u64, .capacity = MOST_PORTS);

#define NETWORK_AT 14u /* frames have no VLAN tags here */
#define QUOTED4    (576u - sizeof(struct ipv4) - sizeof(struct icmp))
#define QUOTED6    (1280u - sizeof(struct ipv6) - sizeof(struct icmp))

MILLRACE_INLINE _Bool may_send_error(const struct packet *p)
{
	__u64 *next = vector_at(&due, p->port), apart, begin;

	if (!next || !errors_a_second)
		return 0;
	apart = SECONDS(1) / errors_a_second;
	begin = *next > p->time ? *next : p->time;
	if (begin - p->time > apart * (ERRORS_AT_ONCE - 1))
		return 0;
	*next = begin + apart;
	return 1;
}

/* What the frame becomes, but for its payload: to whom it came from, from the port that it came to. */
MILLRACE_INLINE void turn_frame(struct ethernet *ethernet, const void *to, const struct interface *from)
{
	copy_mac(ethernet->dst, to);
	copy_mac(ethernet->src, from->mac);
}

MILLRACE_INLINE void write_ipv6(struct ipv6 *ip, __u32 length, __u8 hop_limit, const struct address *src,
				const struct address *dst)
{
	ip->version_class_label = htonl(0x60000000);
	ip->length = htons(length);
	ip->next = PROTOCOL_ICMPV6;
	ip->hop_limit = hop_limit;
	store_address(ip->src, src);
	store_address(ip->dst, dst);
}

/* Makes the packet at NETWORK_AT an ICMP error about itself, out of the port that it came in by. */
MILLRACE_INLINE int error4(const struct packet *p, const struct interface *interface, int error)
{
	struct ethernet *ethernet = packet_at(p, 0, struct ethernet);
	struct ipv4 *ip = packet_at(p, NETWORK_AT, struct ipv4);
	__u32 quoted, header;
	__u16 station[3];
	struct icmp *icmp;
	__be32 to;

	if (!ethernet || !ip)
		return DROP_BECAUSE(bad_header);
	/* RFC 1812, 4.3.2.7: not about errors, later fragments, or what went to or came from many. */
	header = ipv4_header_bytes(ip);
	icmp = packet_at(p, NETWORK_AT + header, struct icmp);
	if (ipv4_later_fragment(ip) || (ethernet->dst[0] & 1) ||
	    (ip->protocol == PROTOCOL_ICMP && (!icmp || icmp_is_error(icmp->type))))
		return DROP_BECAUSE(no_error);
	if (!may_send_error(p))
		return DROP_BECAUSE(error_rate);
	to = ip->src;
	quoted = ntohs(ip->length);
	if (quoted > QUOTED4)
		quoted = QUOTED4;
	copy_mac(station, ethernet->src);
	if (!packet_trim(p, NETWORK_AT + quoted) ||
	    !packet_push(p, sizeof(struct ipv4) + sizeof(struct icmp)))
		return DROP_BECAUSE(no_room);
	ethernet = packet_at(p, 0, struct ethernet);
	ip = packet_at(p, NETWORK_AT, struct ipv4);
	icmp = packet_at(p, NETWORK_AT + sizeof(struct ipv4), struct icmp);
	if (!ethernet || !ip || !icmp)
		return DROP_BECAUSE(bad_header);
	turn_frame(ethernet, station, interface);
	ethernet->type = htons(ETHERTYPE_IPV4);
	*ip = (struct ipv4){
		.version_ihl = 0x45,
		.tos = 0xc0, /* internetwork control (RFC 1812, 4.3.2.5) */
		.length = htons(sizeof(struct ipv4) + sizeof(struct icmp) + quoted),
		.ttl = 64,
		.protocol = PROTOCOL_ICMP,
		.src = interface->address,
		.dst = to,
	};
	ip->checksum = ~checksum_fold(packet_sum(p, NETWORK_AT, sizeof(struct ipv4)));
	icmp->type = ERROR_TYPE(error);
	icmp->code = ERROR_CODE(error);
	icmp->checksum = 0;
	store32(&icmp->id, htonl(ERROR_MTU(error)));
	icmp->checksum = ~checksum_fold(
		packet_sum(p, NETWORK_AT + sizeof(struct ipv4), sizeof(struct icmp) + quoted));
	return FORWARD(p->port);
}

/* Whether the packet at NETWORK_AT is an ICMPv6 error or redirect itself, or cannot be read far enough to tell
 * (RFC 4443, 2.4, e). */
MILLRACE_INLINE _Bool is_error6(const struct packet *p, const struct ipv6 *ip)
{
	__u32 at = NETWORK_AT + sizeof(struct ipv6);
	struct ipv6_transport found = ipv6_walk(p, at, ip->next, at + ntohs(ip->length));
	struct icmp *icmp;

	if (!found.at)
		return 1;
	if (found.later || found.protocol != PROTOCOL_ICMPV6)
		return 0;
	icmp = packet_at(p, found.at, struct icmp);
	return !icmp || icmp->type < 128 || icmp->type == 137;
}

/* The same for IPv6: as much of the packet as fits into 1280 bytes. */
MILLRACE_INLINE int error6(const struct packet *p, const struct interface *interface, int error)
{
	struct ethernet *ethernet = packet_at(p, 0, struct ethernet);
	struct ipv6 *ip = packet_at(p, NETWORK_AT, struct ipv6);
	struct address to, from;
	__u16 station[3];
	struct icmp *icmp;
	__u32 quoted;

	if (!ethernet || !ip)
		return DROP_BECAUSE(bad_header);
	if (is_error6(p, ip))
		return DROP_BECAUSE(no_error);
	if (!may_send_error(p))
		return DROP_BECAUSE(error_rate);
	to = address_from_ipv6(ip->src);
	from = IS_LINK_LOCAL(to) ? link_local(interface) : interface->address6;
	quoted = sizeof(struct ipv6) + ntohs(ip->length);
	if (quoted > QUOTED6)
		quoted = QUOTED6;
	copy_mac(station, ethernet->src);
	if (!packet_trim(p, NETWORK_AT + quoted) ||
	    !packet_push(p, sizeof(struct ipv6) + sizeof(struct icmp)))
		return DROP_BECAUSE(no_room);
	ethernet = packet_at(p, 0, struct ethernet);
	ip = packet_at(p, NETWORK_AT, struct ipv6);
	icmp = packet_at(p, NETWORK_AT + sizeof(struct ipv6), struct icmp);
	if (!ethernet || !ip || !icmp)
		return DROP_BECAUSE(bad_header);
	turn_frame(ethernet, station, interface);
	ethernet->type = htons(ETHERTYPE_IPV6);
	write_ipv6(ip, sizeof(struct icmp) + quoted, 64, &from, &to);
	icmp->type = ERROR_TYPE(error);
	icmp->code = ERROR_CODE(error);
	icmp->checksum = 0;
	store32(&icmp->id, htonl(ERROR_MTU(error)));
	icmp->checksum = ~checksum_fold(
		icmpv6_sum(p, NETWORK_AT + sizeof(struct ipv6), sizeof(struct icmp) + quoted));
	return FORWARD(p->port);
}

#endif
