#include <millrace/nf.h>
PORTS(LAN, WAN);
VECTOR(totals, __u64, .capacity = 1);

ON_PACKET(p)
{
	__u64 *total = vector_at(&totals, 0);

	if (total)
		__atomic_fetch_nand(total, 1, 5);
	return FORWARD(peer(p));
}
