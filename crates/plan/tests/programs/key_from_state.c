/* Counts by a group that a table gives each source and that packets change. */
#include <millrace/nf.h>

PORTS(LAN, WAN);

struct group {
	__u64 number;
};

struct count {
	__u64 packets;
};

MAP(groups, struct address, struct group, .capacity = 1024);
MAP(counts, struct group, struct count, .capacity = 1024);

ON_PACKET(p)
{
	struct address src;
	struct group *group, fresh;
	struct count *count;
	struct ipv4 *ip;
	__be16 type;
	__u32 at = packet_network(p, &type);

	if (!at || type != htons(ETHERTYPE_IPV4))
		return FORWARD(peer(p));
	ip = ipv4_at(p, at);
	if (!ip)
		return DROP_BECAUSE(bad_header);
	src = address_from_ipv4(ip->src);
	group = map_get(&groups, &src);
	if (!group) {
		fresh.number = ip->ttl;
		if (!map_put(&groups, &src, &fresh))
			return DROP_BECAUSE(table_full);
		return FORWARD(peer(p));
	}
	fresh.number = group->number;
	count = map_get(&counts, &fresh);
	if (!count)
		count = map_put(&counts, &fresh, &(struct count){ 0 });
	if (!count || ++count->packets > 100)
		return DROP_BECAUSE(over_limit);
	return FORWARD(peer(p));
}
