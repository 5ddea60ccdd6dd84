/* Full maps, of which a packet deletes entries and then puts others: each leaves room for one. */
#include <millrace/nf.h>

PORTS(LAN, WAN);

MAP(few, __be32, __u64, .capacity = 3);

MILLRACE_INLINE _Bool put(__be32 key, __u64 value)
{
	return map_put(&few, &key, &value) != NULL;
}

ON_PACKET(p)
{
	struct ipv4 *ip = packet_at(p, 14, struct ipv4);
	__u32 kept = 0;
	__be32 src, dst;

	if (!ip)
		return FORWARD(peer(p));
	src = ip->src;
	dst = ip->dst;
	if (ip->ttl == 7)
		return put(src, 1) ? FORWARD(WAN) : DROP_BECAUSE(full);
	if (ip->ttl != 9 || src == dst)
		return FORWARD(peer(p));
	/* Whether it is full shows; what is deleted then is no longer in the way. */
	kept += put(src, 1);
	kept += map_delete(&few, &dst) << 1;
	kept += put(src, 2) << 2;
	kept += put(dst, 3) << 3;
	return kept == 7 ? DROP_BECAUSE(second) : kept == 6 ? DROP_BECAUSE(exchanged) : FORWARD(WAN);
}
