#include <millrace/nf.h>

PORTS(LAN, WAN);
MAP(seen, struct flow, struct session, .capacity = 64, .expire_after = SECONDS(1));

ON_PACKET(p)
{
	struct flow f;
	
	if (!packet_flow(p, &f))
		return DROP;
	return map_get(&seen, &f)->note ? FORWARD(peer(p)) : DROP;
}
