/* Putting another address and port into a packet's headers, and into those of the packet that an
 * ICMP error carries; every checksum follows (RFC 1624; RFC 3022, 4.1 to 4.3).
 */
#ifndef MILLRACE_REWRITE_H
#define MILLRACE_REWRITE_H

#include <millrace/flow4.h>

struct endpoint {
	__be32 address;
	__be16 port; /* or an echo's identifier */
};

/* The transport header after its port, or identifier, and one of the addresses changed. TCP's and
 * UDP's checksums cover the addresses too (the pseudo-header); ICMP's does not. */
MILLRACE_LIBRARY void rewrite_transport(const struct transport *transport, _Bool source, __be32 old,
				       struct endpoint new)
{
	if (transport->protocol == PROTOCOL_TCP) {
		struct tcp *tcp = transport->header;
		__be16 port = source ? tcp->sport : tcp->dport;

		tcp->checksum = checksum_replace16(
			checksum_replace32(tcp->checksum, old, new.address), port, new.port);
		if (source)
			tcp->sport = new.port;
		else
			tcp->dport = new.port;
	} else if (transport->protocol == PROTOCOL_UDP) {
		struct udp *udp = transport->header;
		__be16 port = source ? udp->sport : udp->dport;

		udp->checksum = checksum_udp_replace16(
			checksum_udp_replace32(udp->checksum, old, new.address), port, new.port);
		if (source)
			udp->sport = new.port;
		else
			udp->dport = new.port;
	} else {
		struct icmp *icmp = transport->header;

		icmp->checksum = checksum_replace16(icmp->checksum, icmp->id, new.port);
		icmp->id = new.port;
	}
}

MILLRACE_LIBRARY void rewrite_source(struct flow4_headers *headers, struct endpoint new)
{
	rewrite_transport(&headers->transport, 1, headers->ip->src, new);
	ipv4_set_src(headers->ip, new.address);
}

MILLRACE_LIBRARY void rewrite_destination(struct flow4_headers *headers, struct endpoint new)
{
	rewrite_transport(&headers->transport, 0, headers->ip->dst, new);
	ipv4_set_dst(headers->ip, new.address);
}

/* The packet inside an error. The error's own checksum covers all of it: the address, the header
 * checksum that follows the address, the port, and the transport checksum that follows both. The
 * first two cancel (one goes up by what the other goes down), and so would the rest, were it not that
 * a UDP checksum may be absent and a TCP checksum lie beyond the end. So each change is counted. */
MILLRACE_LIBRARY void rewrite_carried(const struct packet *p, struct flow4_headers *headers,
				     struct endpoint new, _Bool source)
{
	struct ipv4 *ip = headers->carried_ip;
	struct icmp *error = headers->transport.header;
	__u8 *transport = headers->carried_transport;
	__be32 old = source ? ip->src : ip->dst;
	__u16 header_sum = ip->checksum, sum = error->checksum;
	__u8 *port = transport, *check = (void *)0;
	__u16 before, after;

	if (source)
		ipv4_set_src(ip, new.address);
	else
		ipv4_set_dst(ip, new.address);
	sum = checksum_replace32(sum, old, new.address);
	sum = checksum_replace16(sum, header_sum, ip->checksum);

	if (ip->protocol == PROTOCOL_ICMP) {
		port += 4;
		check = transport + 2;
		old = new.address; /* not covered: no change to account for */
	} else {
		port += source ? 0 : 2;
		if (ip->protocol == PROTOCOL_UDP && load16(transport + 6))
			check = transport + 6;
		else if (ip->protocol == PROTOCOL_TCP && headers->carried_at + 18 <= headers->limit)
			check = packet_bytes(p, headers->carried_at + 16, 2);
	}
	before = load16(port);
	store16(port, new.port);
	sum = checksum_replace16(sum, before, new.port);
	if (check) {
		__u16 was = load16(check);

		after = checksum_replace16(checksum_replace32(was, old, new.address), before,
					   new.port);
		if (ip->protocol == PROTOCOL_UDP && !after)
			after = 0xffff;
		store16(check, after);
		sum = checksum_replace16(sum, was, after);
	}
	error->checksum = sum;
}

#endif
