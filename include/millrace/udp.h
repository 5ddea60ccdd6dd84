/* UDP (RFC 768). The checksum may be zero over IPv4: none was computed. */
#ifndef MILLRACE_UDP_H
#define MILLRACE_UDP_H

#include <linux/types.h>

struct udp {
	__be16 sport;
	__be16 dport;
	__be16 length; /* header and payload */
	__u16 checksum;
};

#endif
