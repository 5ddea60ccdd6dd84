#include <millrace/distributed.h>
#include <millrace/nf.h>

PORTS(LAN, WAN);
DISTRIBUTED(counts, struct { __u64 flows; __u64 most; }, .staleness = MILLISECONDS(1));

ON_PACKET(p)
{
	distributed_add(&counts, flows, 1);
	if (p->port == WAN)
		distributed_max(&counts, flows, 3);
	return FORWARD(peer(p));
}
