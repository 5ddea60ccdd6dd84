/* Interfaces, routes and neighbours. Addresses of both families are `struct address`, IPv4 as ::ffff:a.b.c.d,
 * so that one table and one way through the function serve both. */
#ifndef ROUTER_TABLES_H
#define ROUTER_TABLES_H

#include <millrace/adjust.h>
#include <millrace/arp.h>
#include <millrace/ndp.h>
#include <millrace/nf.h>

#define MOST_PORTS  64
#define MOST_ROUTES 1024

/* Of a port, by its number; set from outside before the first packet, or by a reload. */
struct interface {
	__be32 address; /* 0: no IPv4 */
	__u8 bits;      /* of its network */
	__u8 bits6;
	__u16 mtu;      /* bytes of the longest packet; 0: 1500 */
	struct address address6; /* 0: no IPv6 */
	__u8 mac[6];             /* 0: 02:4d:52:00:00:NN, NN the port */
	__u8 zero[2];
};
VECTOR(interfaces, struct interface, .capacity = MOST_PORTS);

/* A route; set from outside before the first packet, or by a reload. All zero: none. */
struct written_route {
	struct address network;
	struct address gateway; /* 0: the network is on the link */
	__u32 port;
	__u32 bits;
};
VECTOR(routes, struct written_route, .capacity = MOST_ROUTES);

enum route_kind {
	ROUTE_LINK,  /* a network of a port */
	ROUTE_VIA,   /* behind a gateway */
	ROUTE_LOCAL, /* an address of ours */
	ROUTE_BROADCAST,
	ROUTE_NONE,
};

struct route {
	struct address gateway;
	__u32 port;
	__u32 kind;
};

/* What ON_START makes of both: a prefix of 128 bits, of IPv4 96 more than written. */
LPM(table, struct address, struct route, .capacity = MOST_ROUTES + 5 * MOST_PORTS);

/* A router or host on a link. */
struct hop {
	struct address address;
	__u32 port;
	__u32 zero;
};

struct neighbour {
	__u16 mac[3];
	__u16 zero;
};

/* Written by ARP and neighbour discovery alone. */
MAP(neighbours, struct hop, struct neighbour, .capacity = 4096, .expire_after = MINUTES(5));

/* Next hops that are asked for and have not answered. */
struct question {
	__u64 time; /* of the last request */
	__u64 requests;
};
MAP(asked, struct hop, struct question, .capacity = 1024, .expire_after = SECONDS(10));

#define SAME(a, b) ((a).words[0] == (b).words[0] && (a).words[1] == (b).words[1])
#define IS_ZERO(a) (!((a).words[0] | (a).words[1]))
#define IS_IPV4(a) ((a).words[0] == 0 && (__u32)(a).words[1] == 0xffff0000)

MILLRACE_INLINE void copy_mac(void *to, const void *from)
{
	store16(to, load16(from));
	store16((__u8 *)to + 2, load16((const __u8 *)from + 2));
	store16((__u8 *)to + 4, load16((const __u8 *)from + 4));
}

MILLRACE_INLINE _Bool same_mac(const void *a, const void *b)
{
	return load16(a) == load16(b) && load16((const __u8 *)a + 2) == load16((const __u8 *)b + 2) &&
	       load16((const __u8 *)a + 4) == load16((const __u8 *)b + 4);
}

MILLRACE_INLINE void store_address(void *to, const struct address *from)
{
	store64(to, from->words[0]);
	store64((__u64 *)to + 1, from->words[1]);
}

MILLRACE_INLINE __u32 mtu_of(const struct interface *interface)
{
	return interface->mtu ? interface->mtu : 1500;
}

/* The link-local address of an interface: fe80::, and its MAC address as RFC 4291, appendix A has it. */
MILLRACE_INLINE struct address link_local(const struct interface *interface)
{
	const __u8 *mac = interface->mac;
	struct address own = { { htons(0xfe80) } };

	own.words[1] = (__u64)(mac[0] ^ 2) | (__u64)mac[1] << 8 | (__u64)mac[2] << 16 | 0xfeffull << 24 |
		       (__u64)mac[3] << 40 | (__u64)mac[4] << 48 | (__u64)mac[5] << 56;
	return own;
}

/* fe80::/10 */
#define IS_LINK_LOCAL(a) (((a).words[0] & htons(0xffc0)) == htons(0xfe80))

/* Whether a station with this address may be on the link of a port. */
MILLRACE_INLINE _Bool on_link(const struct address *address, __u32 port)
{
	struct route *route;

	if (IS_LINK_LOCAL(*address))
		return 1;
	route = lpm_get(&table, address);
	return route && route->kind == ROUTE_LINK && route->port == port;
}

/* Notes where a station is. A full table keeps what it has: the next packet to the station asks again. */
MILLRACE_INLINE void learn(const struct packet *p, const struct address *address, const void *mac)
{
	struct hop hop = { *address, p->port, 0 };
	struct neighbour found = {};

	copy_mac(found.mac, mac);
	if ((found.mac[0] & 1) || !on_link(address, p->port))
		return;
	map_put(&neighbours, &hop, &found);
}

MILLRACE_INLINE void put_route(const struct address *network, __u32 bits, __u32 port, enum route_kind kind,
			       const struct address *gateway)
{
	struct route route = { *gateway, port, kind };

	lpm_put(&table, network, bits, &route);
}

/* The routes that an interface's own addresses are. */
MILLRACE_INLINE void start_interface(struct interface *interface, __u32 port)
{
	struct address none = {}, address;
	__u32 broadcast;

	if (!interface->address && IS_ZERO(interface->address6))
		return;
	if (!(load16(interface->mac) | load16(interface->mac + 2) | load16(interface->mac + 4))) {
		interface->mac[0] = 2;
		interface->mac[1] = 'M';
		interface->mac[2] = 'R';
		interface->mac[5] = port;
	}
	if (interface->address) {
		address = address_from_ipv4(interface->address);
		put_route(&address, 96u + interface->bits, port, ROUTE_LINK, &none);
		if (interface->bits < 31) {
			broadcast = interface->address | htonl(0xffffffffu >> interface->bits);
			address = address_from_ipv4(broadcast);
			put_route(&address, 128, port, ROUTE_BROADCAST, &none);
		}
		address = address_from_ipv4(interface->address);
		put_route(&address, 128, port, ROUTE_LOCAL, &none);
	}
	if (!IS_ZERO(interface->address6)) {
		put_route(&interface->address6, interface->bits6, port, ROUTE_LINK, &none);
		put_route(&interface->address6, 128, port, ROUTE_LOCAL, &none);
	}
}

MILLRACE_INLINE void start_tables(void)
{
	struct address none = {}, ipv4 = address_from_ipv4(0u);

	/* Else IPv4 would take a default route of IPv6. */
	put_route(&ipv4, 96, 0, ROUTE_NONE, &none);
	MILLRACE_ROLLED
	for (__u32 port = 0; port < MOST_PORTS; port++) {
		struct interface *interface = vector_at(&interfaces, port);

		if (interface)
			start_interface(interface, port);
	}
	MILLRACE_ROLLED
	for (__u32 i = 0; i < MOST_ROUTES; i++) {
		struct written_route *written = vector_at(&routes, i);
		_Bool direct;

		if (!written || (IS_ZERO(written->network) && IS_ZERO(written->gateway)))
			continue;
		direct = IS_ZERO(written->gateway);
		put_route(&written->network,
			  IS_IPV4(written->network) ? 96 + written->bits : written->bits, written->port,
			  direct ? ROUTE_LINK : ROUTE_VIA, &written->gateway);
	}
}

#endif
