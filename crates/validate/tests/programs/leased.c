/* Numbers that a packet gives back, and others that it leases behind that: it may be given the same again. */
#include <millrace/nf.h>

PORTS(LAN, WAN);

ALLOCATOR(numbers, __u32, .capacity = 3, .first = 5);

ON_PACKET(p)
{
	struct ipv4 *ip = packet_at(p, 14, struct ipv4);
	__u32 kept = 1, *found;
	__s64 number;

	if (!ip)
		return FORWARD(peer(p));
	if (ip->ttl & 1) {
		number = allocator_lease(&numbers, &kept);
		return number < 0 ? DROP_BECAUSE(none) : FORWARD(WAN);
	}
	if (!allocator_free(&numbers, ip->tos & 7))
		return DROP_BECAUSE(absent);
	kept = 2;
	number = allocator_lease(&numbers, &kept);
	if (number < 0)
		return DROP_BECAUSE(never);
	found = allocator_get(&numbers, ip->tos & 7);
	return found ? *found == 2 ? FORWARD(WAN) : DROP_BECAUSE(old) : FORWARD(LAN);
}
