/* Sessions: each flow of the LAN has a number, which its packets carry out as their port, and under which packets are counted.
 * Who sends to a number from the WAN reaches the host that has it; nothing is held against what the entry says. */
#include <millrace/nf.h>
#include <millrace/rewrite.h>

PORTS(LAN, WAN);

struct counted {
	__u64 packets;
	__be32 source;
	__u32 zero;
};

struct numbered {
	__u32 id;
};

ALLOCATOR(numbers, struct flow4, .first = 1000, .capacity = 4096, .expire_after = SECONDS(20));
MAP(flows, struct flow4, struct numbered, .capacity = 4096, .expire_after = SECONDS(20));
MAP(by_number, struct numbered, struct counted, .capacity = 4096, .expire_after = SECONDS(20));

ON_PACKET(p)
{
	struct flow4_headers headers;
	struct flow4 f;
	struct numbered *id, fresh;
	struct counted *count, first = {0};
	__s64 lease;

	if (packet_find_flow4(p, &f, &headers) != FLOW_OWN)
		return DROP_BECAUSE(other);
	if (f.protocol == PROTOCOL_ICMP)
		return DROP_BECAUSE(other);
	if (p->port == WAN) {
		fresh.id = ntohs(f.dport);
		count = map_get(&by_number, &fresh);
		if (!count)
			return DROP_BECAUSE(no_session);
		rewrite_destination(&headers, (struct endpoint){ count->source, f.dport });
		return FORWARD(LAN);
	}
	id = map_refresh(&flows, &f);
	if (!id) {
		lease = allocator_lease(&numbers, &f);
		if (lease < 0)
			return DROP_BECAUSE(full);
		fresh.id = lease;
		id = map_put(&flows, &f, &fresh);
		if (!id)
			return DROP_BECAUSE(full);
		first.source = f.src;
		map_put(&by_number, &fresh, &first);
	} else
		allocator_refresh(&numbers, id->id);
	fresh = *id;
	count = map_refresh(&by_number, &fresh);
	if (count)
		count->packets++;
	rewrite_source(&headers, (struct endpoint){ f.src, htons(fresh.id) });
	return FORWARD(WAN);
}
