#include <millrace/nf.h>

PORTS(LAN, WAN);
LPM(routes, __be32, __u32, .capacity = 16);

ON_PACKET(p)
{
	struct ipv4 *ip = ipv4_at(p, 14);
	
	if (!ip)
		return DROP;
	return FORWARD(*lpm_get(&routes, &ip->dst));
}
