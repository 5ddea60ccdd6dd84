#include <millrace/nf.h>
PORTS(LAN, WAN);
VECTOR(totals, __u64, .capacity = 1);

ON_PACKET(p)
{
	__u64 *total = vector_at(&totals, 0), one = 1;

	if (total)
		__asm__ volatile("lock *(u64 *)(%0 + 0) += %1" : : "r"(total), "r"(one) : "memory");
	return FORWARD(peer(p));
}
