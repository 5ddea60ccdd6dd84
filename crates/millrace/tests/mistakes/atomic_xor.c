#include <millrace/nf.h>
PORTS(LAN, WAN);
VECTOR(totals, __u64, .capacity = 1);

ON_PACKET(p)
{
	__u64 *total = vector_at(&totals, 0);

	if (total)
		__atomic_fetch_xor(total, 1, 5);
	return FORWARD(peer(p));
}
//> atomic_xor.c:10: __atomic_fetch_xor(total, 1, 5);
//> atomic: a handler uses an atomic instruction: it sees one packet at a time, and how many run at once is the plan's to decide
//> help: Read and write plainly, as in `count += 1`.
