/* TCP (RFC 9293). */
#ifndef MILLRACE_TCP_H
#define MILLRACE_TCP_H

#include <linux/types.h>

struct tcp {
	__be16 sport;
	__be16 dport;
	__be32 sequence;
	__be32 acknowledgment;
	__u8 offset; /* upper four bits: the header's length in 32-bit words */
	__u8 flags;
	__be16 window;
	__u16 checksum;
	__be16 urgent;
};

enum {
	TCP_FIN = 0x01,
	TCP_SYN = 0x02,
	TCP_RST = 0x04,
	TCP_PSH = 0x08,
	TCP_ACK = 0x10,
	TCP_URG = 0x20,
	TCP_ECE = 0x40,
	TCP_CWR = 0x80,
};

/* The header's length in bytes with its options; less than 20 is malformed. */
#define tcp_header_bytes(tcp) (((tcp)->offset >> 4) * 4u)

#endif
