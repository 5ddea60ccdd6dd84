/* A connection limiter: how many new flows a pair of hosts may open in a time. */
#include <millrace/nf.h>

PORTS(LAN, WAN);

PARAM(__u32, limit, 100); /* new flows a window, from one address to another */

struct pair {
	struct address src;
	struct address dst;
};

MAP(flows, struct flow, struct session, .capacity = 65536, .expire_after = SECONDS(60));

/* Five rows: the estimate is too high only if a pair shares its counter in all five. */
SKETCH(opened, struct pair, .rows = 5, .capacity = 16384, .window = SECONDS(60));

ON_PACKET(p)
{
	struct pair pair;
	struct flow f;

	if (p->port == WAN)
		return FORWARD(LAN);
	switch (packet_find_flow(p, &f)) {
	case FLOW_NONE:
	case FLOW_CARRIED:
		return FORWARD(WAN);
	case FLOW_BAD:
		return DROP_BECAUSE(bad_header);
	case FLOW_FRAGMENT:
		return DROP_BECAUSE(fragment);
	case FLOW_OWN:
		break;
	}
	if (map_refresh(&flows, &f))
		return FORWARD(WAN);
	/* The check comes first: a flow that was recorded and then refused would pass with its
	 * second packet. */
	pair = (struct pair){ f.src, f.dst };
	if (sketch_count(&opened, &pair) >= limit)
		return DROP_BECAUSE(over_limit);
	if (!map_put(&flows, &f, &(struct session){}))
		return DROP_BECAUSE(table_full);
	sketch_add(&opened, &pair, 1);
	return FORWARD(WAN);
}
