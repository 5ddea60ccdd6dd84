#include <millrace/nf.h>

PORTS(LAN, WAN);
MAP(seen, __u32, __u64, .capacity = 64);
static __u64 *kept;

ON_PACKET(p)
{
	__u32 key = p->port;

	if (kept)
		++*kept;
	kept = map_get(&seen, &key);
	return FORWARD(peer(p));
}
//> map_value_kept_in_a_variable.c:12: ++*kept;
//> not-a-pointer: this load uses a number (-2^63 to 2^63-1) as an address
//> help: Derive the address from the context, a map value or a variable; numbers cannot become pointers.
