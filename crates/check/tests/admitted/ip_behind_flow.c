#include <millrace/nf.h>
PORTS(LAN, WAN);
ON_PACKET(p)
{
	struct flow f;
	struct ethernet *e = packet_at(p, 0, struct ethernet);
	struct ipv4 *ip;

	if (!e) return DROP;
	if (!packet_flow(p, &f))
		return DROP;
	ip = packet_at(p, 14, struct ipv4);
	if (!ip) return DROP;
	if (ip->ttl < 2)
			return DROP_BECAUSE(ttl);
	ipv4_decrement_ttl(ip);
	return FORWARD(peer(p));
}
