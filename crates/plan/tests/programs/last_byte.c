/* Address translation to the 256 ports from 0x5000 on, whose last byte is the leased number: no field of a packet is
 * the number, so that it cannot come home by it; but who answers is held against whom the flow was for. */
#include <millrace/nf.h>
#include <millrace/rewrite.h>

PORTS(LAN, WAN);

PARAM(ipv4_address, public_address, IPV4(192, 0, 2, 1));

#define BASE 0x5000
#define COUNT 256

struct number {
	__u32 number;
};

MAP(flows, struct flow4, struct number, .capacity = COUNT, .expire_after = SECONDS(60));
ALLOCATOR(leases, struct flow4, .capacity = COUNT, .first = 0, .expire_after = SECONDS(60));

MILLRACE_INLINE int from_lan(struct flow4 *f, struct flow4_headers *headers)
{
	struct number *number = map_refresh(&flows, f), fresh;
	__s64 lease;

	if (number) {
		allocator_refresh(&leases, number->number);
		fresh.number = number->number;
	} else {
		lease = allocator_lease(&leases, f);
		if (lease < 0)
			return DROP_BECAUSE(table_full);
		fresh.number = lease;
		if (!map_put(&flows, f, &fresh)) {
			allocator_free(&leases, lease);
			return DROP_BECAUSE(table_full);
		}
	}
	rewrite_source(headers,
		       (struct endpoint){ htonl(public_address), htons(BASE | (fresh.number & 0xff)) });
	return FORWARD(WAN);
}

MILLRACE_INLINE int from_wan(struct flow4 *f, struct flow4_headers *headers)
{
	__u32 number = ntohs(f->dport) & 0xff;
	struct flow4 *lease, lan;

	if (f->dst != htonl(public_address) || ntohs(f->dport) >> 8 != BASE >> 8)
		return DROP_BECAUSE(no_flow);
	lease = allocator_get(&leases, number);
	if (!lease || lease->dst != f->src || lease->dport != f->sport || lease->protocol != f->protocol)
		return DROP_BECAUSE(no_flow);
	lan = *lease;
	map_refresh(&flows, &lan);
	allocator_refresh(&leases, number);
	rewrite_destination(headers, (struct endpoint){ lan.src, lan.sport });
	return FORWARD(LAN);
}

ON_PACKET(p)
{
	struct flow4_headers headers;
	enum flow_kind kind;
	struct flow4 f;

	kind = packet_find_flow4(p, &f, &headers);
	if (kind != FLOW_OWN || f.protocol == PROTOCOL_ICMP)
		return DROP_BECAUSE(no_flow);
	return p->port == LAN ? from_lan(&f, &headers) : from_wan(&f, &headers);
}
