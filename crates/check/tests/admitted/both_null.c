#include <millrace/nf.h>

MAP(left, __be32, __u64, .capacity = 5);
MAP(right, __be32, __u64, .capacity = 5);

ON_PACKET(p)
{
	struct ipv4 *ip = packet_at(p, 14, struct ipv4);
	__u64 *a, *b;
	__be32 src;

	if (!ip)
		return DROP;
	src = ip->src;
	a = map_get(&left, &src);
	b = map_get(&right, &src);
	if (!a && !b)
		return DROP_BECAUSE(none);
	if (a)
		++*a;
	return FORWARD(0);
}
