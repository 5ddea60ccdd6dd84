/* Counts by the first two bits of the source: four groups, whatever the hash. */
#include <millrace/nf.h>

PORTS(LAN, WAN);

struct count {
	__u64 packets;
};

MAP(quarters, struct address, struct count, .capacity = 4);

ON_PACKET(p)
{
	struct address quarter;
	struct count *found;
	struct ipv4 *ip;
	__be16 type;
	__u32 at = packet_network(p, &type);

	if (!at || type != htons(ETHERTYPE_IPV4))
		return FORWARD(peer(p));
	ip = ipv4_at(p, at);
	if (!ip)
		return DROP_BECAUSE(bad_header);
	quarter = address_from_ipv4(ip->src & htonl(0xc0000000));
	found = map_get(&quarters, &quarter);
	if (!found)
		found = map_put(&quarters, &quarter, &(struct count){ 0 });
	if (!found || ++found->packets > 1000)
		return DROP_BECAUSE(over_limit);
	return FORWARD(peer(p));
}
