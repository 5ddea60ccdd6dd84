/* ICMP (RFC 792) and ICMPv6 (RFC 4443): queries by identifier, errors with a packet inside. */
#ifndef MILLRACE_ICMP_H
#define MILLRACE_ICMP_H

#include <linux/types.h>

struct icmp {
	__u8 type;
	__u8 code;
	__u16 checksum;
	__be16 id; /* echo: identifier and sequence number; errors: otherwise used */
	__be16 sequence;
};

enum {
	ICMP_ECHO_REPLY = 0,
	ICMP_UNREACHABLE = 3,
	ICMP_SOURCE_QUENCH = 4,
	ICMP_REDIRECT = 5,
	ICMP_ECHO = 8,
	ICMP_TIME_EXCEEDED = 11,
	ICMP_PARAMETER_PROBLEM = 12,

	ICMPV6_UNREACHABLE = 1,
	ICMPV6_TOO_BIG = 2,
	ICMPV6_TIME_EXCEEDED = 3,
	ICMPV6_PARAMETER_PROBLEM = 4,
	ICMPV6_ECHO = 128,
	ICMPV6_ECHO_REPLY = 129,
};

/* Errors carry the header of the packet that they are about, after these 8 bytes (RFC 1812, 4.3.2.3;
 * RFC 4443, 2.1: types below 128). */
#define icmp_is_error(type)                                                                    \
	((type) == ICMP_UNREACHABLE || (type) == ICMP_SOURCE_QUENCH ||                         \
	 (type) == ICMP_REDIRECT || (type) == ICMP_TIME_EXCEEDED ||                            \
	 (type) == ICMP_PARAMETER_PROBLEM)
#define icmpv6_is_error(type) ((type) >= ICMPV6_UNREACHABLE && (type) <= ICMPV6_PARAMETER_PROBLEM)

#endif
