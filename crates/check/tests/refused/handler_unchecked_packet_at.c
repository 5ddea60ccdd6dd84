#include <millrace/nf.h>

PORTS(LAN, WAN);

ON_PACKET(p)
{
	struct ethernet *e = packet_at(p, 0, struct ethernet);
	
	return e->type == htons(ETHERTYPE_ARP) ? FLOOD : FORWARD(peer(p));
}
