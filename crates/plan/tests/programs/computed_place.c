/* Counts in a place of an array that is computed from the sender's address. */
#include <millrace/nf.h>

PORTS(LAN, WAN);

struct count {
	__u64 packets;
};

/* Tests put other ones in this line's place. */
#define PLACES 1000

VECTOR(counts, struct count, .capacity = PLACES);

ON_PACKET(p)
{
	struct count *found;
	struct ipv4 *ip;
	__be16 type;
	__u32 at = packet_network(p, &type);

	if (!at || type != htons(ETHERTYPE_IPV4))
		return FORWARD(peer(p));
	ip = ipv4_at(p, at);
	if (!ip)
		return DROP_BECAUSE(bad_header);
	found = vector_at(&counts, ntohl(ip->src) % PLACES);
	if (found && ++found->packets > 20)
		return DROP_BECAUSE(over_limit);
	return FORWARD(peer(p));
}
