/* Network address and port translation: the LAN shares one public IPv4 address (RFC 3022). */
#include <millrace/nf.h>
#include <millrace/rewrite.h>

PORTS(LAN, WAN);

PARAM(ipv4_address, public_address, IPV4(192, 0, 2, 1));
PARAM(__u8, fragments, 0); /* 1: later fragments go where their first one went */
PARAM(__u8, hop, 1); /* 0: the TTL stays, for a chain in which a router counts the hop */

/* Ports that a system hands to its own servers are not leased. */
#define FIRST_PORT 1024
#define PORT_COUNT (65536 - FIRST_PORT)

struct binding {
	__u32 port; /* leased, host order */
};

/* A flow and its lease are made, refreshed and expire together; a lease of a forwarded port has no flow. */
MAP(flows, struct flow4, struct binding, .capacity = PORT_COUNT, .expire_after = SECONDS(60));
ALLOCATOR(leases, struct flow4, .capacity = PORT_COUNT, .first = FIRST_PORT,
	  .expire_after = SECONDS(60));

/* Static port forwarding, set from outside. A forward is an entry in each: a public endpoint leads to a server
 * of the LAN, and what that server sends leaves from the public endpoint. Nothing is kept of its flows, and no
 * packet writes here, so any core serves any of them. */
struct service {
	__be32 address;
	__be16 port; /* of ICMP 0: echoes keep their identifier */
	__u8 protocol;
	__u8 zero;
};

struct target {
	__be32 address;
	__be16 port;
	__u16 zero;
};

MAP(forwards, struct service, struct target, .capacity = 1024);
MAP(servers, struct service, struct target, .capacity = 1024);

#define SERVICE(address, port, protocol) (&(struct service){ (address), (port), (protocol), 0 })

/* Packets that come in fragments: ports are in the first alone, which notes here where it went. */
struct fragmented {
	__be32 src;
	__be32 dst;
	__be16 id;
	__u8 protocol;
	__u8 zero;
};

MAP(fragmented, struct fragmented, __be32, .capacity = 4096, .expire_after = SECONDS(30));

/* Where a packet, or the one inside an error, goes to or comes from by such an entry: of an echo one port
 * is the identifier and the other 0. */
MILLRACE_INLINE struct endpoint forwarded(const struct target *target, const struct flow4 *f)
{
	__be16 port = f->protocol == PROTOCOL_ICMP ? f->sport | f->dport : target->port;

	return (struct endpoint){ target->address, port };
}

/* The lease behind a public port, if it is for a flow with this server and the packet of that flow
 * has the public address on our side. */
MILLRACE_INLINE struct flow4 *find_lease(__be32 public, __be16 port, __be32 server,
					 __be16 server_port, __u8 protocol)
{
	struct flow4 *lan;

	if (public != htonl(public_address))
		return NULL;
	lan = allocator_get(&leases, ntohs(port));
	if (!lan || lan->dst != server || lan->dport != server_port || lan->protocol != protocol)
		return NULL;
	return lan;
}

MILLRACE_INLINE void count_hop(struct ipv4 *ip)
{
	if (hop)
		ipv4_decrement_ttl(ip);
}

/* Translates a packet and notes, of a first fragment, the address for those that follow. False: there is no
 * room for that. */
MILLRACE_INLINE _Bool translate(struct flow4_headers *headers, struct endpoint new, _Bool source)
{
	struct ipv4 *ip = headers->ip;

	if (fragments && ipv4_more_fragments(ip)) {
		struct fragmented key = { ip->src, ip->dst, ip->id, ip->protocol, 0 };

		if (!map_put(&fragmented, &key, &new.address))
			return 0;
	}
	count_hop(ip);
	if (source)
		rewrite_source(headers, new);
	else
		rewrite_destination(headers, new);
	return 1;
}

MILLRACE_INLINE int from_lan(struct flow4 *f, struct flow4_headers *headers)
{
	struct binding *binding, fresh;
	struct endpoint outside = { htonl(public_address), 0 };
	struct target *server;
	__s64 lease;

	/* The WAN cannot ping through us, but where an address is forwarded. */
	if (f->protocol == PROTOCOL_ICMP &&
	    ((struct icmp *)headers->transport.header)->type != ICMP_ECHO) {
		server = map_get(&servers, SERVICE(f->src, 0, PROTOCOL_ICMP));
		if (!server)
			return DROP_BECAUSE(no_flow);
		outside = forwarded(server, f);
	} else if ((binding = map_refresh(&flows, f))) {
		outside.port = htons(binding->port);
		allocator_refresh(&leases, binding->port);
	} else if (f->protocol != PROTOCOL_ICMP &&
		   (server = map_get(&servers, SERVICE(f->src, f->sport, f->protocol)))) {
		outside = forwarded(server, f);
	} else {
		lease = allocator_lease(&leases, f);
		if (lease < 0)
			return DROP_BECAUSE(table_full);
		/* Left leased, so that the flow's next packet gets another. */
		if (map_get(&forwards, SERVICE(outside.address, htons(lease), f->protocol)))
			return DROP_BECAUSE(forwarded_port);
		fresh.port = lease;
		if (!map_put(&flows, f, &fresh)) {
			allocator_free(&leases, lease);
			return DROP_BECAUSE(table_full);
		}
		outside.port = htons(fresh.port);
	}
	return translate(headers, outside, 1) ? FORWARD(WAN) : DROP_BECAUSE(table_full);
}

MILLRACE_INLINE int from_wan(struct flow4 *f, struct flow4_headers *headers)
{
	struct target *forward = map_get(&forwards, SERVICE(f->dst, f->dport, f->protocol));
	struct endpoint inside;
	struct flow4 *lease, lan;

	if (forward) {
		inside = forwarded(forward, f);
	} else {
		lease = find_lease(f->dst, f->dport, f->src, f->sport, f->protocol);
		if (!lease)
			return DROP_BECAUSE(no_flow);
		lan = *lease;
		map_refresh(&flows, &lan);
		allocator_refresh(&leases, ntohs(f->dport));
		inside = (struct endpoint){ lan.src, lan.sport };
	}
	return translate(headers, inside, 0) ? FORWARD(LAN) : DROP_BECAUSE(table_full);
}

/* A LAN host's error about a packet from the WAN: that packet, inside, is made the one that the
 * server sent. Errors keep no flow alive (RFC 5508, REQ-6). */
MILLRACE_INLINE int error_from_lan(const struct packet *p, struct flow4 *f,
				   struct flow4_headers *headers)
{
	struct binding *binding;
	struct endpoint outside;
	struct target *server;

	flow4_reverse(f);
	binding = map_get(&flows, f);
	if (binding) {
		outside = (struct endpoint){ htonl(public_address), htons(binding->port) };
	} else {
		server = map_get(&servers, SERVICE(f->src, f->sport, f->protocol));
		if (!server)
			return DROP_BECAUSE(no_flow);
		outside = forwarded(server, f);
	}
	count_hop(headers->ip);
	rewrite_carried(p, headers, outside, 0);
	ipv4_set_src(headers->ip, outside.address);
	return FORWARD(WAN);
}

/* An error from the WAN about a packet from the LAN: that packet, inside, is made the one that the LAN
 * sent (RFC 5508, REQ-4). It comes to the address that the packet left from. */
MILLRACE_INLINE int error_from_wan(const struct packet *p, struct flow4 *f,
				   struct flow4_headers *headers)
{
	struct target *forward = map_get(&forwards, SERVICE(f->src, f->sport, f->protocol));
	struct endpoint inside;
	struct flow4 *lease;

	if (headers->ip->dst != f->src)
		return DROP_BECAUSE(no_flow);
	if (forward) {
		inside = forwarded(forward, f);
	} else {
		lease = find_lease(f->src, f->sport, f->dst, f->dport, f->protocol);
		if (!lease)
			return DROP_BECAUSE(no_flow);
		inside = (struct endpoint){ lease->src, lease->sport };
	}
	count_hop(headers->ip);
	rewrite_carried(p, headers, inside, 1);
	ipv4_set_dst(headers->ip, inside.address);
	return FORWARD(LAN);
}

/* A fragment that is not the first goes where that went, if it came before this one. */
MILLRACE_INLINE int later_fragment(const struct packet *p)
{
	__be16 type;
	__u32 at = packet_network(p, &type);
	struct ipv4 *ip = at ? ipv4_at(p, at) : NULL;
	struct fragmented key;
	__be32 *address, new;

	if (!fragments || !ip)
		return DROP_BECAUSE(fragment);
	key = (struct fragmented){ ip->src, ip->dst, ip->id, ip->protocol, 0 };
	address = map_get(&fragmented, &key);
	if (!address)
		return DROP_BECAUSE(fragment);
	if (hop && ip->ttl < 2)
		return DROP_BECAUSE(ttl);
	new = *address;
	count_hop(ip);
	if (p->port == LAN)
		ipv4_set_src(ip, new);
	else
		ipv4_set_dst(ip, new);
	return FORWARD(peer(p));
}

ON_PACKET(p)
{
	struct flow4_headers headers;
	enum flow_kind kind;
	struct flow4 f;

	kind = packet_find_flow4(p, &f, &headers);
	if (kind == FLOW_NONE)
		return FORWARD(peer(p));
	if (kind == FLOW_BAD)
		return DROP_BECAUSE(bad_header);
	if (kind == FLOW_FRAGMENT)
		return later_fragment(p);
	if (hop && headers.ip->ttl < 2)
		return DROP_BECAUSE(ttl);
	if (kind == FLOW_CARRIED)
		return p->port == LAN ? error_from_lan(p, &f, &headers) :
					error_from_wan(p, &f, &headers);
	return p->port == LAN ? from_lan(&f, &headers) : from_wan(&f, &headers);
}
