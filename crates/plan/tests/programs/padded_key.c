/* Counts by source, under a key whose padding nobody writes: it is zeros, so the key is the source's alone. */
#include <millrace/nf.h>

PORTS(LAN, WAN);

struct key {
	__be32 source;
	__u8 version;
};

struct count {
	__u64 packets;
};

MAP(padded, struct key, struct count, .capacity = 65536);

ON_PACKET(p)
{
	struct count *found;
	struct ipv4 *ip;
	struct key key;
	__be16 type;
	__u32 at = packet_network(p, &type);

	if (!at || type != htons(ETHERTYPE_IPV4))
		return FORWARD(peer(p));
	ip = ipv4_at(p, at);
	if (!ip)
		return DROP_BECAUSE(bad_header);
	key.source = ip->src;
	key.version = 4;
	found = map_get(&padded, &key);
	if (!found)
		found = map_put(&padded, &key, &(struct count){ 0 });
	if (!found || ++found->packets > 1000)
		return DROP_BECAUSE(over_limit);
	return FORWARD(peer(p));
}
