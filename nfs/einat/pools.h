/* The public endpoints: for each of up to four addresses, the ports of TCP, and those of UDP together
 * with the identifiers of ICMP echoes. They differ in how long a lease lasts, and that is a property of
 * an allocator.
 */
#ifndef EINAT_POOLS_H
#define EINAT_POOLS_H

#include <millrace/nf.h>
#include <millrace/rewrite.h>

#define MOST_ADDRESSES 4

/* Ports that a system hands to its own servers are not leased. */
#define FIRST_PORT 1024
#define PORT_COUNT (65536 - FIRST_PORT)

#define UDP_TIMEOUT SECONDS(300)  /* RFC 4787, REQ-5: two minutes at least, five recommended */
#define TCP_TIMEOUT SECONDS(7440) /* RFC 5382, REQ-5: 2 h 4 min at least */

/* A LAN endpoint: what is mapped. */
struct internal {
	__be32 address;
	__be16 port; /* or an echo's identifier */
	__u8 protocol;
	__u8 zero;
};

#define UDP_POOL(name) \
	ALLOCATOR(name, struct internal, .capacity = PORT_COUNT, .first = FIRST_PORT, \
		  .expire_after = UDP_TIMEOUT)
#define TCP_POOL(name) \
	ALLOCATOR(name, struct internal, .capacity = PORT_COUNT, .first = FIRST_PORT, \
		  .expire_after = TCP_TIMEOUT)

UDP_POOL(udp_leases0);
UDP_POOL(udp_leases1);
UDP_POOL(udp_leases2);
UDP_POOL(udp_leases3);
TCP_POOL(tcp_leases0);
TCP_POOL(tcp_leases1);
TCP_POOL(tcp_leases2);
TCP_POOL(tcp_leases3);

/* A call on the object of a protocol … */
#define IN_TABLE(protocol, call, tcp, udp, ...)                                                \
	((protocol) == PROTOCOL_TCP ? call(&tcp, __VA_ARGS__) : call(&udp, __VA_ARGS__))
/* … and of an address. */
#define IN_POOL(protocol, index, call, ...)                                                    \
	((index) == 0 ? IN_TABLE(protocol, call, tcp_leases0, udp_leases0, __VA_ARGS__) :      \
	 (index) == 1 ? IN_TABLE(protocol, call, tcp_leases1, udp_leases1, __VA_ARGS__) :      \
	 (index) == 2 ? IN_TABLE(protocol, call, tcp_leases2, udp_leases2, __VA_ARGS__) :      \
			IN_TABLE(protocol, call, tcp_leases3, udp_leases3, __VA_ARGS__))

#endif
