#include <millrace/nf.h>

PORTS(LAN, WAN);
MAP(seen, struct flow, struct session, .capacity = 64, .expire_after = SECONDS(1));

ON_PACKET(p)
{
	struct flow f;
	
	if (!packet_flow(p, &f))
		return DROP;
	map_put(&seen, &f, &(struct session){ 1 })->note++;
	return FORWARD(peer(p));
}
