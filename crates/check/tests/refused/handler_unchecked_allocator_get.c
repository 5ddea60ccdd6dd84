#include <millrace/nf.h>

PORTS(LAN, WAN);
ALLOCATOR(numbers, __u64, .capacity = 16);

ON_PACKET(p)
{
	return *allocator_get(&numbers, 3) ? FORWARD(peer(p)) : DROP;
}
