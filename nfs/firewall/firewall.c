/* A stateful firewall: what the LAN opens, the WAN may answer. */
#include <millrace/nf.h>

PORTS(LAN, WAN);

/* Flows that the LAN opened, as it sees them. */
MAP(flows, struct flow, struct session, .capacity = 65536, .expire_after = SECONDS(60));

ON_PACKET(p)
{
	struct flow f;

	switch (packet_find_flow(p, &f)) {
	case FLOW_NONE:
		return FORWARD(peer(p)); /* not ours to judge */
	case FLOW_BAD:
		return DROP_BECAUSE(bad_header);
	case FLOW_FRAGMENT:
		return DROP_BECAUSE(fragment);
	case FLOW_CARRIED:
		/* An error from the WAN must be about a packet that the LAN sent, and it keeps no
		 * flow alive (RFC 5508, REQ-6). */
		if (p->port == WAN && !map_get(&flows, &f))
			return DROP_BECAUSE(no_flow);
		return FORWARD(peer(p));
	case FLOW_OWN:
		break;
	}
	if (p->port == WAN)
		flow_reverse(&f);
	if (map_refresh(&flows, &f))
		return FORWARD(peer(p));
	if (p->port == WAN)
		return DROP_BECAUSE(no_flow);
	return map_put(&flows, &f, &(struct session){}) ? FORWARD(peer(p)) : DROP_BECAUSE(table_full);
}
