#include <millrace/nf.h>

PORTS(LAN, WAN);
static __u64 counts[4];

ON_PACKET(p)
{
	counts[p->queue]++;
	return FORWARD(peer(p));
}
