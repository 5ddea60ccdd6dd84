/* A packet from the WAN passes if it answers one of the LAN's: `flows` by a key that is the other way
 * round, `mappings` by what it keeps of the packet that came first. The tests of the model build it as it
 * is, and with one thing changed, after which a sentence would be wrong. */
#include <millrace/nf.h>

PORTS(LAN, WAN);

struct pair {
	__be32 src;
	__be32 dst;
	__be16 sport;
	__be16 dport;
};

struct number {
	__be16 port;
};

struct peer {
	__be32 address;
	__be16 port;
	__u16 zero;
};

MAP(flows, struct pair, struct session, .capacity = 1024);
MAP(mappings, struct number, struct peer, .capacity = 1024);

ON_PACKET(p)
{
	struct ethernet *ethernet = packet_at(p, 0, struct ethernet);
	struct ipv4 *ip = packet_at(p, 14, struct ipv4);
	struct udp *udp = packet_at(p, 34, struct udp);
	struct number number = {};
	struct peer *peer, kept = {};
	struct pair pair;

	if (!ethernet || !ip || !udp || ethernet->type != htons(ETHERTYPE_IPV4) ||
	    ip->version_ihl != 0x45 || ip->protocol != PROTOCOL_UDP)
		return DROP_BECAUSE(other);
	if (p->port == LAN) {
		pair = (struct pair){ ip->src, ip->dst, udp->sport, udp->dport };
		number.port = udp->sport;
		kept.address = ip->dst;
		kept.port = udp->dport;
		if (!map_put(&flows, &pair, &(struct session){}) ||
		    !map_put(&mappings, &number, &kept))
			return DROP_BECAUSE(table_full);
		return FORWARD(WAN);
	}
	pair = (struct pair){ ip->dst, ip->src, udp->dport, udp->sport };
	if (!map_get(&flows, &pair))
		return DROP_BECAUSE(unknown);
	number.port = udp->dport;
	peer = map_get(&mappings, &number);
	if (!peer)
		return DROP_BECAUSE(unknown);
	if (peer->address != ip->src || peer->port != udp->sport)
		return DROP_BECAUSE(unknown); /* a mismatch */
	return FORWARD(LAN);
}
