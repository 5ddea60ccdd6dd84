/* Neighbour discovery for IPv6 over Ethernet (RFC 4861): solicitations and advertisements. Include it by name. */
#ifndef MILLRACE_NDP_H
#define MILLRACE_NDP_H

#include <millrace/adjust.h>
#include <millrace/ethernet.h>
#include <millrace/icmp.h>
#include <millrace/ipv4.h>
#include <millrace/ipv6.h>

/* A solicitation or advertisement; options follow. */
struct ndp {
	__u8 type;
	__u8 code;
	__u16 checksum;
	__be32 flags; /* of an advertisement */
	__u32 target[4];
};

/* The option that tells an Ethernet address. */
struct ndp_option {
	__u8 type;
	__u8 length; /* in units of 8 bytes */
	__u16 mac[3];
};

enum {
	NDP_SOLICITATION = 135,
	NDP_ADVERTISEMENT = 136,
	NDP_SOURCE = 1, /* option: the sender's Ethernet address */
	NDP_TARGET = 2, /* … the target's */
};

#define NDP_ROUTER    0x80000000u
#define NDP_SOLICITED 0x40000000u
#define NDP_OVERRIDE  0x20000000u

/* The sum that the checksum of an ICMPv6 message covers: of the pseudo-header and `bytes` bytes at `at`, where
 * the IPv6 header stands before it (RFC 8200, 8.1). */
MILLRACE_LIBRARY __u64 icmpv6_sum(const struct packet *p, __u32 at, __u32 bytes)
{
	return packet_sum(p, at - 32, bytes + 32) + htons(bytes) + htons(PROTOCOL_ICMPV6);
}

/* The message at an offset, right after the IPv6 header of which `ip` is: NULL when it is none or RFC 4861, 7.1,
 * has it ignored, which says that it came from the link itself. */
MILLRACE_LIBRARY struct ndp *ndp_at(const struct packet *p, __u32 at, const struct ipv6 *ip)
{
	struct ndp *ndp = packet_at(p, at, struct ndp);
	__u32 bytes = ntohs(ip->length);

	if (!ndp || bytes < sizeof(struct ndp) || ip->hop_limit != 255 || ndp->code != 0 ||
	    (ndp->type != NDP_SOLICITATION && ndp->type != NDP_ADVERTISEMENT) ||
	    !checksum_holds(icmpv6_sum(p, at, bytes)))
		return (void *)0;
	return ndp;
}

/* The Ethernet address that a message tells in an option of a type, as one of the first four options; NULL:
 * none. */
MILLRACE_LIBRARY struct ndp_option *ndp_option_of(const struct packet *p, __u32 at, const struct ipv6 *ip,
						 __u8 type)
{
	__u32 end = at + ntohs(ip->length), found = 0;

	at += sizeof(struct ndp);
	MILLRACE_ROLLED
	for (int options = 0; options < 4; options++) {
		struct ndp_option *option = packet_at(p, at, struct ndp_option);

		if (!option || at + sizeof(struct ndp_option) > end || !option->length)
			break;
		if (option->type == type && option->length == 1) {
			found = at;
			break;
		}
		at += option->length * 8u;
	}
	return found ? packet_at(p, found, struct ndp_option) : (void *)0;
}

#endif
