#include <millrace/nf.h>
PORTS(LAN, WAN);
MAP(seen, struct flow, struct session, .capacity = 100, .expire_after = SECONDS(1));
ON_PACKET(p)
{
	struct flow f;
	struct tcp *tcp;
	struct transport t;

	if (packet_find_flow(p, &f) != FLOW_OWN)
		return DROP;
	tcp = packet_tcp(p);
	t = packet_transport(p);
	if (tcp && tcp->flags & TCP_SYN && !map_put(&seen, &f, &(struct session){ 0 }))
		return DROP_BECAUSE(full);
	if (t.protocol == PROTOCOL_UDP && ((struct udp *)t.header)->dport == htons(53))
		return DROP_BECAUSE(dns);
	return map_get(&seen, &f) ? FORWARD(peer(p)) : DROP_BECAUSE(no_flow);
}
