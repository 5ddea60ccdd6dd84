#include <millrace/nf.h>
PORTS(LAN, WAN);
MAP(seen, struct flow, struct session, .capacity = 100, .expire_after = SECONDS(1));
ON_PACKET(p)
{
	struct flow f;
	struct ipv4 *ip;
	__be16 type;
	__u32 at;

	if (!packet_flow(p, &f))
		return DROP;
	at = packet_network(p, &type);
	if (at && type == htons(ETHERTYPE_IPV4)) {
		ip = ipv4_at(p, at);
		if (!ip)
			return DROP;
		if (ip->ttl < 2)
			return DROP_BECAUSE(ttl);
		ipv4_decrement_ttl(ip);
	}
	if (!map_put(&seen, &f, &(struct session){ 0 }))
		return DROP_BECAUSE(full);
	return FORWARD(peer(p));
}
