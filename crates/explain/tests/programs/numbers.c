/* Numbers that are leased and given back by chance: which one is leased next depends on the order in which they became
 * free. */
#include <millrace/nf.h>

PORTS(LAN, WAN);

ALLOCATOR(numbers, __u32, .capacity = 5, .first = 10);

ON_PACKET(p)
{
	__u32 draw = random32();
	__s64 number;

	if (draw & 1) {
		allocator_free(&numbers, 10 + (draw >> 8) % 5);
		return DROP;
	}
	number = allocator_lease(&numbers, &draw);
	if (number < 0)
		return DROP_BECAUSE(none_free);
	return number & 1 ? FORWARD(peer(p)) : PASS;
}
