/* IPv6 (RFC 8200) and the walk over its extension headers. */
#ifndef MILLRACE_IPV6_H
#define MILLRACE_IPV6_H

#include <millrace/packet.h>

/* An address of either version, as whole words. IPv4 addresses stand as ::ffff:a.b.c.d (RFC 4291,
 * 2.5.5.2), a form that no packet on a wire should carry. */
struct address {
	__u64 words[2];
};

struct ipv6 {
	__be32 version_class_label;
	__be16 length; /* of what follows these 40 bytes */
	__u8 next;
	__u8 hop_limit;
	__u32 src[4];
	__u32 dst[4];
};

enum {
	IPV6_HOP_BY_HOP = 0,
	IPV6_ROUTING = 43,
	IPV6_FRAGMENT = 44,
	IPV6_AUTHENTICATION = 51,
	IPV6_DESTINATION = 60,
	/* Headers that the walk will pass. RFC 8200 names six; a packet with more is refused. */
	IPV6_MOST_EXTENSIONS = 8,
};

#define address_from_ipv6(from) ((struct address){ { load64(from), load64((from) + 2) } })
#define address_from_ipv4(from) ((struct address){ { 0, (__u64)(from) << 32 | 0xffff0000 } })

/* The header at an offset, or NULL when it is not one: version, length within the frame. */
MILLRACE_LIBRARY struct ipv6 *ipv6_at(const struct packet *p, __u32 at)
{
	struct ipv6 *ip = packet_at(p, at, struct ipv6);

	if (!ip || (ip->version_class_label & htonl(0xf0000000)) != htonl(0x60000000))
		return (void *)0;
	if (at + sizeof(struct ipv6) + ntohs(ip->length) > packet_length(p))
		return (void *)0;
	return ip;
}

/* Where the extension headers end. */
struct ipv6_transport {
	__u32 at;      /* offset of the first header that is not an extension; 0: malformed */
	__u8 protocol; /* its number */
	__u8 later;    /* a fragment, and others came before: what is at `at` is not a header */
};

/* Which header numbers, all below 64, are extension headers: a bit each. */
#define IPV6_EXTENSIONS                                                                        \
	(1ull << IPV6_HOP_BY_HOP | 1ull << IPV6_ROUTING | 1ull << IPV6_FRAGMENT |              \
	 1ull << IPV6_AUTHENTICATION | 1ull << IPV6_DESTINATION)

/* All ones if `next` is `number`, else 0, by shifts whose constant is hidden from clang, which would
 * make branches of them. The walk is arithmetic as far as it can be: every branch in it is a choice at
 * each of eight headers, and an analysis of all paths has them all to follow. */
MILLRACE_LIBRARY __u32 ipv6_is(__u8 next, __u8 number)
{
	__u64 set = 1ull << number;
	__u32 mask;

	__asm__("" : "+r"(set));
	mask = -(__u32)(set >> (next & 63) & 1);
	__asm__("" : "+r"(mask));
	return mask;
}

/* Walks from offset `at`, where header number `next` stands, no further than `limit`. Encrypted
 * payload (ESP) and "no next header" are what the walk ends at, like a transport. */
MILLRACE_LIBRARY struct ipv6_transport ipv6_walk(const struct packet *p, __u32 at, __u8 next,
						__u32 limit)
{
	struct ipv6_transport found = { .at = 0 };

	MILLRACE_ROLLED
	for (int headers = 0; headers <= IPV6_MOST_EXTENSIONS; headers++) {
		__u32 fragment, authentication, length;
		__u8 *header;

		if (next > 63 || !(IPV6_EXTENSIONS >> next & 1)) {
			found.at = at;
			found.protocol = next;
			return found;
		}
		header = packet_bytes(p, at, 8);
		if (!header || at + 8 > limit)
			return found;
		fragment = ipv6_is(next, IPV6_FRAGMENT);
		authentication = ipv6_is(next, IPV6_AUTHENTICATION);
		/* The fragment's offset is in the upper 13 bits. */
		if (ntohs(load16(header + 2)) >> 3 & fragment) {
			found.at = at;
			found.later = 1;
			return found;
		}
		/* Units of 8 bytes beyond the first; for fragments one; for authentication units of 4
		 * beyond the second (RFC 4302, 2.2). */
		length = header[1] & ~fragment;
		at += (length + 1 - authentication) << (3 + authentication);
		next = header[0];
		if (at > limit)
			return found;
	}
	return found;
}

#endif
