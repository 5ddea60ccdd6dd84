/* Counts by source and by destination, and lets through only what both are small for. */
#include <millrace/nf.h>

PORTS(LAN, WAN);

struct count {
	__u64 packets;
};

MAP(by_source, struct address, struct count, .capacity = 1024);
MAP(by_destination, struct address, struct count, .capacity = 1024);

#define count(map, address)                                                                    \
	({                                                                                     \
		struct count *found = map_get(map, address);                                   \
		if (!found)                                                                    \
			found = map_put(map, address, &(struct count){ 0 });                   \
		found ? ++found->packets : 0;                                                  \
	})

ON_PACKET(p)
{
	struct address src, dst;
	struct ipv4 *ip;
	__be16 type;
	__u32 at = packet_network(p, &type);

	if (!at || type != htons(ETHERTYPE_IPV4))
		return FORWARD(peer(p));
	ip = ipv4_at(p, at);
	if (!ip)
		return DROP_BECAUSE(bad_header);
	src = address_from_ipv4(ip->src);
	dst = address_from_ipv4(ip->dst);
	if (count(&by_source, &src) > 100 || count(&by_destination, &dst) > 100)
		return DROP_BECAUSE(over_limit);
	return FORWARD(peer(p));
}
