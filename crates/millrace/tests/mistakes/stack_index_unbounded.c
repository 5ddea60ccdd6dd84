#include <millrace/nf.h>
PORTS(LAN, WAN);

ON_PACKET(p)
{
	__u8 seen[16] = { 0 };
	__u8 *first = packet_at(p, 0, __u8);

	if (!first)
		return DROP;
	seen[*first] = 1;
	return seen[3] ? DROP : FORWARD(peer(p));
}
//> stack_index_unbounded.c:11: seen[*first] = 1;
//> stack-bounds: this store touches bytes -16 to 239 of the stack, which has bytes -512 to -1
//> help: Bound the index before it is used, e.g. `if (index >= COUNT) return …;`.
