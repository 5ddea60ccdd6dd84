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
//> atomic_assembly.c:10: __asm__ volatile("lock *(u64 *)(%0 + 0) += %1" : : "r"(total), "r"(one) : "memory");
//> atomic: a handler uses an atomic instruction: it sees one packet at a time, and how many run at once is the plan's to decide
//> help: Read and write plainly, as in `count += 1`.
