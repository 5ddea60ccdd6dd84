/* Endpoint-independent network address translation (RFC 4787): a LAN endpoint has one public endpoint,
 * whomever it talks to, and whoever knows that may send to it. */
#include "pools.h"

PORTS(LAN, WAN);

PARAM(ipv4_address, public_address, IPV4(192, 0, 2, 1)); /* the first of them */
PARAM(__u32, addresses, 1);                             /* how many, one after another: 1 to 4 */
PARAM(__u8, hairpin, 0); /* 1: LAN hosts reach each other by their public endpoints */

/* The public endpoint of a LAN endpoint. It and its lease are made, refreshed and expire together. */
struct mapping {
	__u32 index; /* of the public address */
	__u32 port;  /* leased, host order */
};

MAP(udp_mappings, struct internal, struct mapping, .capacity = MOST_ADDRESSES * PORT_COUNT,
    .expire_after = UDP_TIMEOUT);
MAP(tcp_mappings, struct internal, struct mapping, .capacity = MOST_ADDRESSES * PORT_COUNT,
    .expire_after = TCP_TIMEOUT);

MILLRACE_INLINE __u32 address_count(void)
{
	return addresses == 0 ? 1 : addresses > MOST_ADDRESSES ? MOST_ADDRESSES : addresses;
}

/* Which of the public addresses it is; MOST_ADDRESSES: none of them. */
MILLRACE_INLINE __u32 public_index(__be32 address)
{
	__u32 index = ntohl(address) - public_address;

	return index < address_count() ? index : MOST_ADDRESSES;
}

MILLRACE_INLINE struct endpoint external(const struct mapping *mapping)
{
	return (struct endpoint){ htonl(public_address + mapping->index), htons(mapping->port) };
}

/* The mapping of an endpoint, without a change to its age. */
MILLRACE_INLINE struct mapping *find_mapping(const struct internal *internal)
{
	return IN_TABLE(internal->protocol, map_get, tcp_mappings, udp_mappings, internal);
}

/* The LAN endpoint behind a public one. */
MILLRACE_INLINE struct internal *find_internal(__be32 address, __be16 port, __u8 protocol)
{
	__u32 index = public_index(address);
	struct internal *internal;

	if (index == MOST_ADDRESSES)
		return NULL;
	internal = IN_POOL(protocol, index, allocator_get, ntohs(port));
	/* UDP ports and echo identifiers are numbers of one allocator. */
	return internal && internal->protocol == protocol ? internal : NULL;
}

/* The mapping of an endpoint that sends, made if there is none; NULL: no port is free. Packets from the
 * LAN keep a mapping alive, packets from the WAN do not (RFC 4787, REQ-6 and section 12: else whoever
 * sends could hold it open). */
MILLRACE_INLINE struct mapping *map_endpoint(const struct internal *internal)
{
	struct mapping *mapping, fresh;
	__s64 lease;

	mapping = IN_TABLE(internal->protocol, map_refresh, tcp_mappings, udp_mappings, internal);
	if (mapping) {
		IN_POOL(internal->protocol, mapping->index, allocator_refresh, mapping->port);
		return mapping;
	}
	/* A host keeps to one of the addresses (REQ-2, "paired"). */
	fresh.index = ntohl(internal->address) % address_count();
	lease = IN_POOL(internal->protocol, fresh.index, allocator_lease, internal);
	if (lease < 0)
		return NULL;
	fresh.port = lease;
	mapping = IN_TABLE(internal->protocol, map_put, tcp_mappings, udp_mappings, internal,
			   &fresh);
	if (!mapping)
		IN_POOL(internal->protocol, fresh.index, allocator_free, fresh.port);
	return mapping;
}

/* Back to where the frame came from, which then delivers it: the Ethernet addresses change places. */
MILLRACE_INLINE int turn_round(const struct packet *p)
{
	struct ethernet *ethernet = packet_at(p, 0, struct ethernet);
	__u16 word;

	if (!ethernet)
		return DROP_BECAUSE(bad_header);
	for (int i = 0; i < 3; i++) {
		word = ethernet->src[i];
		ethernet->src[i] = ethernet->dst[i];
		ethernet->dst[i] = word;
	}
	return FORWARD(LAN);
}

MILLRACE_INLINE int from_lan(const struct packet *p, struct flow4 *f, struct flow4_headers *headers)
{
	struct internal internal = { f->src, f->sport, f->protocol, 0 }, other;
	_Bool turns = public_index(f->dst) != MOST_ADDRESSES;
	struct internal *found;
	struct mapping *mapping;

	/* An echo reply answers nobody: the WAN cannot ping through us. */
	if (f->protocol == PROTOCOL_ICMP &&
	    ((struct icmp *)headers->transport.header)->type != ICMP_ECHO)
		return DROP_BECAUSE(no_mapping);
	if (turns) {
		if (hairpin != 1)
			return DROP_BECAUSE(hairpin);
		/* A LAN host that were pinged would have to answer, see above. */
		found = f->protocol == PROTOCOL_ICMP ? NULL :
						       find_internal(f->dst, f->dport, f->protocol);
		if (!found)
			return DROP_BECAUSE(no_mapping);
		other = *found;
	}
	mapping = map_endpoint(&internal);
	if (!mapping)
		return DROP_BECAUSE(table_full);
	ipv4_decrement_ttl(headers->ip);
	rewrite_source(headers, external(mapping));
	if (!turns)
		return FORWARD(WAN);
	rewrite_destination(headers, (struct endpoint){ other.address, other.port });
	return turn_round(p);
}

MILLRACE_INLINE int from_wan(struct flow4 *f, struct flow4_headers *headers)
{
	struct internal *internal = find_internal(f->dst, f->dport, f->protocol);

	/* An echo request has its identifier at the other side: nobody's. */
	if (!internal || (f->protocol == PROTOCOL_ICMP &&
			  ((struct icmp *)headers->transport.header)->type != ICMP_ECHO_REPLY))
		return DROP_BECAUSE(no_mapping);
	ipv4_decrement_ttl(headers->ip);
	rewrite_destination(headers, (struct endpoint){ internal->address, internal->port });
	return FORWARD(LAN);
}

/* A LAN host's error about a packet from the WAN: that packet, inside, is made the one that was sent.
 * Errors keep no mapping alive (RFC 5508, REQ-6). */
MILLRACE_INLINE int error_from_lan(const struct packet *p, struct flow4 *f,
				   struct flow4_headers *headers)
{
	struct internal internal = { f->dst, f->dport, f->protocol, 0 };
	struct endpoint outside;
	struct mapping *mapping;

	if (public_index(headers->ip->dst) != MOST_ADDRESSES)
		return DROP_BECAUSE(hairpin);
	mapping = find_mapping(&internal);
	if (!mapping)
		return DROP_BECAUSE(no_mapping);
	outside = external(mapping);
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
	struct internal *internal = find_internal(f->src, f->sport, f->protocol);
	struct endpoint inside;

	if (!internal || headers->ip->dst != f->src)
		return DROP_BECAUSE(no_mapping);
	inside = (struct endpoint){ internal->address, internal->port };
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
	return p->port == LAN ? from_lan(p, &f, &headers) : from_wan(&f, &headers);
}
