/* Counts by every other bit of the source: what a key lets count of one bit its neighbour would have to cancel. */
#include <millrace/nf.h>

PORTS(LAN, WAN);

struct count {
	__u64 packets;
};

MAP(combed, struct address, struct count, .capacity = 65536);

ON_PACKET(p)
{
	struct address comb;
	struct count *found;
	struct ipv4 *ip;
	__be16 type;
	__u32 at = packet_network(p, &type);

	if (!at || type != htons(ETHERTYPE_IPV4))
		return FORWARD(peer(p));
	ip = ipv4_at(p, at);
	if (!ip)
		return DROP_BECAUSE(bad_header);
	comb = address_from_ipv4(ip->src & htonl(0x55555555));
	found = map_get(&combed, &comb);
	if (!found)
		found = map_put(&combed, &comb, &(struct count){ 0 });
	if (!found || ++found->packets > 1000)
		return DROP_BECAUSE(over_limit);
	return FORWARD(peer(p));
}
