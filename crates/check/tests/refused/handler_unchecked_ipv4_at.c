#include <millrace/nf.h>

PORTS(LAN, WAN);

ON_PACKET(p)
{
	struct ipv4 *ip = ipv4_at(p, 14);
	
	return ip->ttl > 1 ? FORWARD(peer(p)) : DROP;
}
