#include <millrace/nf.h>
PORTS(LAN, WAN);
MAP(flows, struct flow, struct session, .capacity = 64, .staleness = 1);

ON_PACKET(p)
{
	struct flow f = {};

	return packet_flow(p, &f) && map_get(&flows, &f) ? FORWARD(peer(p)) : DROP;
}
//> staleness_of_a_map.c:3: a map takes no .staleness (`flows`)
//> help: leave it out, or declare numbers that packets add to with DISTRIBUTED
