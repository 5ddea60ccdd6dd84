#include <millrace/nf.h>
PORTS(LAN, WAN);
MAP(seen, struct flow, struct session, .capacity = 100, .expire_after = SECONDS(1));
ON_PACKET(p)
{
	struct flow f;
	struct tcp *tcp;

	if (!packet_flow(p, &f))
		return DROP;
	tcp = packet_tcp(p);
	if (tcp && tcp->flags & TCP_SYN && !map_put(&seen, &f, &(struct session){ 0 }))
		return DROP_BECAUSE(full);
	return map_get(&seen, &f) ? FORWARD(peer(p)) : DROP_BECAUSE(no_flow);
}
