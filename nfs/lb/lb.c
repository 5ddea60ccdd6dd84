/* A load balancer: each flow from the WAN goes to one of the backends that the LAN announces. */
#include <millrace/nf.h>

PORTS(LAN, WAN);

PARAM(ipv4_address, service_address, 0); /* what clients send to; 0: any address */

#include "maglev.h"

struct assignment {
	__be32 backend; /* address */
	__u32 zero;
};

MAP(flows, struct flow4, struct assignment, .capacity = 65536, .expire_after = SECONDS(60));

MILLRACE_INLINE void copy_mac(__u16 *to, const __u16 *from)
{
	to[0] = from[0];
	to[1] = from[1];
	to[2] = from[2];
}

MILLRACE_INLINE _Bool same_mac(const __u16 *a, const __u16 *b)
{
	return a[0] == b[0] && a[1] == b[1] && a[2] == b[2];
}

/* A packet from a backend says that it lives, and at which Ethernet address. Where there is no room for
 * another backend, it is none. */
MILLRACE_INLINE void announce(const struct ethernet *ethernet, __be32 address)
{
	struct backend announced = { .address = address };
	struct progress *state;
	__u32 *slot;

	if (map_get(&unhealthy, &announced.address))
		return;
	slot = map_refresh(&backends, &announced.address);
	copy_mac(announced.mac, ethernet->src);
	if (slot) {
		struct backend *known = vector_at(&slots, *slot);

		if (known && !same_mac(known->mac, announced.mac))
			copy_mac(known->mac, announced.mac);
		return;
	}
	state = vector_at(&progress, 0);
	if (!state || !map_put(&backends, &announced.address, &(__u32){ 0 }))
		return;
	keep_living(state, announced.address);
	insert(state, &announced);
}

MILLRACE_INLINE int from_lan(const struct packet *p)
{
	struct ethernet *ethernet = packet_at(p, 0, struct ethernet);
	__be16 type;
	__u32 at = packet_network(p, &type);
	struct ipv4 *ip;

	if (!at || !ethernet || type != htons(ETHERTYPE_IPV4))
		return FORWARD(WAN);
	ip = ipv4_at(p, at);
	if (!ip)
		return DROP_BECAUSE(bad_header);
	/* Not a host that has no address yet, and not the address that all backends answer with. */
	if (ip->src && ip->src != htonl(service_address))
		announce(ethernet, ip->src);
	return FORWARD(WAN);
}

/* Hands the packet to a backend as a router would: to its Ethernet address, one hop on. The IP
 * addresses stay, so the backend answers the client by itself. */
MILLRACE_INLINE int to_backend(const struct packet *p, struct ipv4 *ip, const struct backend *backend)
{
	struct ethernet *ethernet = packet_at(p, 0, struct ethernet);

	if (!ethernet)
		return DROP_BECAUSE(bad_header);
	copy_mac(ethernet->src, ethernet->dst);
	copy_mac(ethernet->dst, backend->mac);
	ipv4_decrement_ttl(ip);
	return FORWARD(LAN);
}

MILLRACE_INLINE int from_wan(const struct packet *p)
{
	struct flow4_headers headers;
	struct assignment *assignment, fresh = {};
	struct progress *state;
	struct backend *backend;
	struct flow4 f;

	switch (packet_find_flow4(p, &f, &headers)) {
	case FLOW_NONE:
	case FLOW_CARRIED:
		return FORWARD(LAN);
	case FLOW_BAD:
		return DROP_BECAUSE(bad_header);
	case FLOW_FRAGMENT:
		return DROP_BECAUSE(fragment);
	case FLOW_OWN:
		break;
	}
	if (service_address && f.dst != htonl(service_address))
		return FORWARD(LAN);
	if (headers.ip->ttl < 2)
		return DROP_BECAUSE(ttl);
	assignment = map_refresh(&flows, &f);
	if (assignment) {
		backend = find_backend(assignment->backend);
		if (backend)
			return to_backend(p, headers.ip, backend);
	}
	state = vector_at(&progress, 0);
	backend = state ? choose_backend(state, &f) : NULL;
	if (!backend)
		return DROP_BECAUSE(no_backend);
	if (assignment) {
		assignment->backend = backend->address;
	} else {
		fresh.backend = backend->address;
		if (!map_put(&flows, &f, &fresh))
			return DROP_BECAUSE(table_full);
	}
	return to_backend(p, headers.ip, backend);
}

ON_PACKET(p)
{
	return p->port == LAN ? from_lan(p) : from_wan(p);
}

/* A backend that falls silent is no packet's business; this is when its share goes to the others. */
EVERY(MILLISECONDS(10), p)
{
	struct progress *state = vector_at(&progress, 0);

	if (!state)
		return;
	if (any_backend_gone(state))
		keep_living(state, 0);
	if (state->changed)
		begin_table(state);
	continue_table(state);
}
