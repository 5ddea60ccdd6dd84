#include <millrace/distributed.h>
#include <millrace/nf.h>
PORTS(LAN, WAN);
DISTRIBUTED(counts, struct { __u32 packets; }, .staleness = 0);

ON_PACKET(p)
{
	distributed_add(&counts, packets, 1);
	return FORWARD(peer(p));
}
