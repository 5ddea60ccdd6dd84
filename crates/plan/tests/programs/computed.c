/* Counts by a number that is computed from the packet's addresses. */
#include <millrace/nf.h>

PORTS(LAN, WAN);

struct number {
	__u64 value;
};

struct count {
	__u64 packets;
};

MAP(counts, struct number, struct count, .capacity = 65536);

PARAM(__u8, by_destination, 0);
PARAM(__u32, mask, 0xffff);

/* Tests put other ones in this line's place. */
#define KEY (ntohl(ip->src) + 1)

ON_PACKET(p)
{
	struct number number;
	struct count *found;
	struct ipv4 *ip;
	__be16 type;
	__u32 at = packet_network(p, &type);

	if (!at || type != htons(ETHERTYPE_IPV4))
		return FORWARD(peer(p));
	ip = ipv4_at(p, at);
	if (!ip)
		return DROP_BECAUSE(bad_header);
	number.value = KEY;
	found = map_get(&counts, &number);
	if (!found)
		found = map_put(&counts, &number, &(struct count){ 0 });
	if (!found)
		return DROP_BECAUSE(table_full);
	if (++found->packets > 20)
		return DROP_BECAUSE(over_limit);
	return FORWARD(peer(p));
}
