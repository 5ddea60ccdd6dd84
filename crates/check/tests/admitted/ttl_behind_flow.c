#include <millrace/nf.h>
PORTS(LAN, WAN);
ON_PACKET(p)
{
	__be16 type;
	struct flow f;
	__u32 at;
	struct ipv4 *ip;
	if (!packet_flow(p, &f))
		return DROP;
	at = packet_network(p, &type);
	if (type != htons(ETHERTYPE_IPV4))
		return FORWARD(peer(p));
	ip = ipv4_at(p, at);
	if (!ip)
		return DROP;
	if (ip->ttl < 2)
		return DROP_BECAUSE(ttl);
	return FORWARD(peer(p));
}
