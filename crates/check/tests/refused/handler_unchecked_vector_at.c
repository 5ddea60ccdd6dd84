#include <millrace/nf.h>

PORTS(LAN, WAN);
VECTOR(counts, __u64, .capacity = 4);

ON_PACKET(p)
{
	(*vector_at(&counts, p->port))++;
	return FORWARD(peer(p));
}
