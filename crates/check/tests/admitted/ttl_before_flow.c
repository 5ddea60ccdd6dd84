#include <millrace/nf.h>
PORTS(LAN, WAN);
MAP(seen, struct flow, struct session, .capacity = 100, .expire_after = SECONDS(1));
ON_PACKET(p)
{
	__be16 type;
	struct flow f;
	struct ipv4 *ip;
	struct tcp *tcp;
	__u32 at;
	at = packet_network(p, &type);
	ip = ipv4_at(p, at);
	if (!ip || ip->ttl < 2)
		return DROP_BECAUSE(ttl);
	if (!packet_flow(p, &f))
		return DROP;
	tcp = packet_at(p, at + ipv4_header_bytes(ip), struct tcp);
	if (f.protocol == PROTOCOL_TCP && tcp && tcp->flags & TCP_SYN)
		if (!map_put(&seen, &f, &(struct session){ 0 }))
			return DROP;
	if (!map_get(&seen, &f))
		return DROP;
	ipv4_decrement_ttl(ip);
	return FORWARD(peer(p));
}
