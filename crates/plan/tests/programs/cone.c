/* One public endpoint for each LAN endpoint, whomever it talks to: ports of TCP and UDP and identifiers of echoes
 * are numbers of one allocator. */
#include <millrace/nf.h>
#include <millrace/rewrite.h>

PORTS(LAN, WAN);

PARAM(ipv4_address, public_address, IPV4(192, 0, 2, 1));
PARAM(__u8, hairpin, 0); /* 1: LAN hosts reach each other by their public endpoints */

struct internal {
	__be32 address;
	__be16 port;
	__u8 protocol;
	__u8 zero;
};

struct mapping {
	__u64 port;
};

MAP(mappings, struct internal, struct mapping, .capacity = 64512, .expire_after = SECONDS(60));
ALLOCATOR(numbers, struct internal, .capacity = 64512, .first = 1024, .expire_after = SECONDS(60));

MILLRACE_INLINE struct mapping *mapped(const struct internal *internal)
{
	struct mapping *mapping = map_refresh(&mappings, internal);
	struct mapping fresh;
	__s64 number;

	if (mapping) {
		allocator_refresh(&numbers, mapping->port);
		return mapping;
	}
	number = allocator_lease(&numbers, internal);
	if (number < 0)
		return NULL;
	fresh.port = number;
	mapping = map_put(&mappings, internal, &fresh);
	if (!mapping)
		allocator_free(&numbers, number);
	return mapping;
}

MILLRACE_INLINE int from_lan(struct flow4 *f, struct flow4_headers *headers)
{
	struct internal internal = { f->src, f->sport, f->protocol, 0 }, other;
	struct mapping *mapping;
	struct internal *found;
	_Bool turns = f->dst == htonl(public_address);

	if (turns) {
		if (hairpin != 1)
			return DROP_BECAUSE(hairpin);
		found = allocator_get(&numbers, ntohs(f->dport));
		if (!found)
			return DROP_BECAUSE(no_mapping);
		other = *found;
	}
	mapping = mapped(&internal);
	if (!mapping)
		return DROP_BECAUSE(table_full);
	rewrite_source(headers, (struct endpoint){ htonl(public_address), htons(mapping->port) });
	if (!turns)
		return FORWARD(WAN);
	rewrite_destination(headers, (struct endpoint){ other.address, other.port });
	return FORWARD(LAN);
}

MILLRACE_INLINE int from_wan(struct flow4 *f, struct flow4_headers *headers)
{
	struct internal *internal = NULL;

	if (f->dst == htonl(public_address))
		internal = allocator_get(&numbers, ntohs(f->dport));
	if (!internal || internal->protocol != f->protocol)
		return DROP_BECAUSE(no_mapping);
	rewrite_destination(headers, (struct endpoint){ internal->address, internal->port });
	return FORWARD(LAN);
}

/* An error from the WAN about a packet from the LAN. */
MILLRACE_INLINE int error_from_wan(const struct packet *p, struct flow4 *f,
				   struct flow4_headers *headers)
{
	struct internal *internal = NULL;
	struct endpoint inside;

	if (f->src == htonl(public_address) && headers->ip->dst == f->src)
		internal = allocator_get(&numbers, ntohs(f->sport));
	if (!internal || internal->protocol != f->protocol)
		return DROP_BECAUSE(no_mapping);
	inside = (struct endpoint){ internal->address, internal->port };
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
	if (kind == FLOW_BAD || kind == FLOW_FRAGMENT)
		return DROP_BECAUSE(bad_header);
	if (kind == FLOW_CARRIED)
		return p->port == LAN ? DROP_BECAUSE(no_mapping) :
					error_from_wan(p, &f, &headers);
	if (p->port == WAN)
		return from_wan(&f, &headers);
	return from_lan(&f, &headers);
}
