/* Network address and port translation: the LAN shares one public IPv4 address (RFC 3022). */
#include <millrace/nf.h>
#include <millrace/rewrite.h>

PORTS(LAN, WAN);

PARAM(ipv4_address, public_address, IPV4(192, 0, 2, 1));

/* Ports that a system hands to its own servers are not leased. */
#define FIRST_PORT 1024
#define PORT_COUNT (65536 - FIRST_PORT)

struct binding {
	__u32 port; /* leased, host order */
};

/* A flow and its lease are made, refreshed and expire together, so each is there when the other is. */
MAP(flows, struct flow4, struct binding, .capacity = PORT_COUNT, .expire_after = SECONDS(60));
ALLOCATOR(leases, struct flow4, .capacity = PORT_COUNT, .first = FIRST_PORT,
	  .expire_after = SECONDS(60));

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

MILLRACE_INLINE int from_lan(struct flow4 *f, struct flow4_headers *headers)
{
	struct binding *binding, fresh;
	struct endpoint outside;
	__s64 lease;

	/* An echo reply answers nobody: the WAN cannot ping through us. */
	if (f->protocol == PROTOCOL_ICMP &&
	    ((struct icmp *)headers->transport.header)->type != ICMP_ECHO)
		return DROP_BECAUSE(no_flow);
	binding = map_refresh(&flows, f);
	if (binding) {
		outside.port = htons(binding->port);
		allocator_refresh(&leases, binding->port);
	} else {
		lease = allocator_lease(&leases, f);
		if (lease < 0)
			return DROP_BECAUSE(table_full);
		fresh.port = lease;
		if (!map_put(&flows, f, &fresh)) {
			allocator_free(&leases, lease);
			return DROP_BECAUSE(table_full);
		}
		outside.port = htons(fresh.port);
	}
	outside.address = htonl(public_address);
	ipv4_decrement_ttl(headers->ip);
	rewrite_source(headers, outside);
	return FORWARD(WAN);
}

MILLRACE_INLINE int from_wan(struct flow4 *f, struct flow4_headers *headers)
{
	struct flow4 *lease = find_lease(f->dst, f->dport, f->src, f->sport, f->protocol);
	struct flow4 lan;

	if (!lease)
		return DROP_BECAUSE(no_flow);
	lan = *lease;
	map_refresh(&flows, &lan);
	allocator_refresh(&leases, ntohs(f->dport));
	ipv4_decrement_ttl(headers->ip);
	rewrite_destination(headers, (struct endpoint){ lan.src, lan.sport });
	return FORWARD(LAN);
}

/* A LAN host's error about a packet from the WAN: that packet, inside, is made the one that the
 * server sent. Errors keep no flow alive (RFC 5508, REQ-6). */
MILLRACE_INLINE int error_from_lan(const struct packet *p, struct flow4 *f,
				   struct flow4_headers *headers)
{
	struct binding *binding;
	struct endpoint outside;

	flow4_reverse(f);
	binding = map_get(&flows, f);
	if (!binding)
		return DROP_BECAUSE(no_flow);
	outside = (struct endpoint){ htonl(public_address), htons(binding->port) };
	ipv4_decrement_ttl(headers->ip);
	rewrite_carried(p, headers, outside, 0);
	ipv4_set_src(headers->ip, outside.address);
	return FORWARD(WAN);
}

/* An error from the WAN about a packet from the LAN: that packet, inside, is made the one that the LAN
 * sent (RFC 5508, REQ-4). */
MILLRACE_INLINE int error_from_wan(const struct packet *p, struct flow4 *f,
				   struct flow4_headers *headers)
{
	struct flow4 *lease = find_lease(f->src, f->sport, f->dst, f->dport, f->protocol);
	struct endpoint inside;

	if (!lease || headers->ip->dst != htonl(public_address))
		return DROP_BECAUSE(no_flow);
	inside = (struct endpoint){ lease->src, lease->sport };
	ipv4_decrement_ttl(headers->ip);
	rewrite_carried(p, headers, inside, 1);
	ipv4_set_dst(headers->ip, inside.address);
	return FORWARD(LAN);
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
		return DROP_BECAUSE(fragment);
	if (headers.ip->ttl < 2)
		return DROP_BECAUSE(ttl);
	if (kind == FLOW_CARRIED)
		return p->port == LAN ? error_from_lan(p, &f, &headers) :
					error_from_wan(p, &f, &headers);
	return p->port == LAN ? from_lan(&f, &headers) : from_wan(&f, &headers);
}
