#include <millrace/nf.h>
PORTS(LAN, WAN);
MAP(flows, struct flow, struct session, .capacity = 64, .staleness = 1);

ON_PACKET(p)
{
	struct flow f = {};

	return packet_flow(p, &f) && map_get(&flows, &f) ? FORWARD(peer(p)) : DROP;
}
