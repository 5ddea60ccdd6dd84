#include <millrace/nf.h>

PORTS(LAN, WAN);

ON_PACKET(p)
{
	*(volatile __u32 *)&p->port = 1;
	return FORWARD(peer(p));
}
