/* IPv4 (RFC 791), its header held to what a router must check (RFC 1812, 5.2.2). */
#ifndef MILLRACE_IPV4_H
#define MILLRACE_IPV4_H

#include <millrace/checksum.h>
#include <millrace/packet.h>

struct ipv4 {
	__u8 version_ihl;
	__u8 tos;
	__be16 length; /* header and payload */
	__be16 id;
	__be16 fragment; /* flags in the upper three bits, then the offset in units of 8 bytes */
	__u8 ttl;
	__u8 protocol;
	__u16 checksum;
	__be32 src;
	__be32 dst;
};

enum {
	PROTOCOL_ICMP = 1,
	PROTOCOL_TCP = 6,
	PROTOCOL_UDP = 17,
	PROTOCOL_ICMPV6 = 58,
};

/* An IPv4 address as a parameter: a number in host order. IPV4(192, 0, 2, 1) makes one. */
typedef __u32 ipv4_address;
#define IPV4(a, b, c, d) ((ipv4_address)(a) << 24 | (b) << 16 | (c) << 8 | (d))

/* The header's length in bytes with its options: 20 to 60 in a header that was checked. */
#define ipv4_header_bytes(ip) (((ip)->version_ihl & 0x0f) * 4u)
/* Whether more fragments follow this one … */
#define ipv4_more_fragments(ip) (((ip)->fragment & htons(0x2000)) != 0)
/* … and whether others came before, so that the transport header is not here. */
#define ipv4_later_fragment(ip) (((ip)->fragment & htons(0x1fff)) != 0)

/* The sum over the 32-bit words of a header of `bytes` bytes, which were checked to be in the frame. */
MILLRACE_LIBRARY __u64 ipv4_header_sum(const struct packet *p, __u32 at, const struct ipv4 *ip,
				      __u32 bytes)
{
	const __u8 *word = (const __u8 *)ip;
	__u64 sum = (__u64)load32(word) + load32(word + 4) + load32(word + 8) + load32(word + 12) +
		    load32(word + 16);

	MILLRACE_ROLLED
	for (__u32 option = sizeof(struct ipv4); option < 60; option += 4) {
		if (option >= bytes)
			break;
		word = packet_bytes(p, at + option, 4);
		if (!word)
			break;
		sum += load32(word);
	}
	return sum;
}

/* The header at an offset, or NULL when it is not one: version, header length, total length within
 * the frame (one that was cut short is discarded), checksum. */
MILLRACE_LIBRARY struct ipv4 *ipv4_at(const struct packet *p, __u32 at)
{
	struct ipv4 *ip = packet_at(p, at, struct ipv4);
	__u32 header, length;

	if (!ip || ip->version_ihl >> 4 != 4)
		return (void *)0;
	header = ipv4_header_bytes(ip);
	length = ntohs(ip->length);
	if (header < sizeof(struct ipv4) || length < header || at + length > packet_length(p))
		return (void *)0;
	if (!checksum_holds(ipv4_header_sum(p, at, ip, header)))
		return (void *)0;
	return ip;
}

/* One hop less (RFC 1812, 5.3.1). The caller has seen that the TTL is 2 or more. */
MILLRACE_LIBRARY void ipv4_decrement_ttl(struct ipv4 *ip)
{
	__u16 old = load16(&ip->ttl);

	ip->ttl--;
	ip->checksum = checksum_replace16(ip->checksum, old, load16(&ip->ttl));
}

/* Gives the packet another source or destination; the header's checksum follows. */
MILLRACE_LIBRARY void ipv4_set_src(struct ipv4 *ip, __be32 src)
{
	ip->checksum = checksum_replace32(ip->checksum, ip->src, src);
	ip->src = src;
}

MILLRACE_LIBRARY void ipv4_set_dst(struct ipv4 *ip, __be32 dst)
{
	ip->checksum = checksum_replace32(ip->checksum, ip->dst, dst);
	ip->dst = dst;
}

#endif
