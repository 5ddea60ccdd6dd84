/* Hierarchical heavy hitters: no network of the WAN may take more than its share of the link, be it
 * large, middling or small. */
#include <millrace/nf.h>

PORTS(LAN, WAN);

PARAM(__u64, rate, 125000000); /* of the link, bytes a second */
PARAM(__u32, threshold, 10);   /* a network's share of it, percent */

/* Every counter is halved at each full second of the clock. */
#define HALF_LIFE SECONDS(1)
/* After as many halvings any count is 0, so to forget it changes nothing. */
#define FORGET 64

struct counter {
	__u64 bytes;
	__u64 epoch; /* the second in which it was last written */
};

/* Keyed by the network's first address. IPv4: /8, /16, /24; IPv6: /32, /48, /64. */
MAP(large, struct address, struct counter, .capacity = 65536, .expire_after = SECONDS(FORGET));
MAP(middling, struct address, struct counter, .capacity = 65536, .expire_after = SECONDS(FORGET));
MAP(small, struct address, struct counter, .capacity = 65536, .expire_after = SECONDS(FORGET));

/* The networks that a source is in. */
struct networks {
	struct address large;
	struct address middling;
	struct address small;
};

/* 1, or 0 when the packet is not IP, or -1 when its header is broken. */
MILLRACE_INLINE int find_networks(const struct packet *p, struct networks *n)
{
	__be16 type;
	__u32 at = packet_network(p, &type);

	MILLRACE_IN_MEMORY(n);
	if (!at)
		return 0;
	if (type == htons(ETHERTYPE_IPV4)) {
		struct ipv4 *ip = ipv4_at(p, at);

		if (!ip)
			return -1;
		n->large = address_from_ipv4(ip->src & htonl(0xff000000));
		n->middling = address_from_ipv4(ip->src & htonl(0xffff0000));
		n->small = address_from_ipv4(ip->src & htonl(0xffffff00));
		return 1;
	}
	if (type == htons(ETHERTYPE_IPV6)) {
		struct ipv6 *ip = ipv6_at(p, at);
		__u64 upper;

		if (!ip)
			return -1;
		upper = load64(ip->src);
		/* Bytes lie as on the wire: the first of them are the lower bits. */
		n->large = (struct address){ { upper & 0xffffffff, 0 } };
		n->middling = (struct address){ { upper & 0xffffffffffff, 0 } };
		n->small = (struct address){ { upper, 0 } };
		return 1;
	}
	return 0;
}

/* What the counter holds in a later second: as many halvings as seconds began since. */
MILLRACE_INLINE __u64 decayed(const struct counter *counter, __u64 epoch)
{
	__u64 halvings = epoch > counter->epoch ? epoch - counter->epoch : 0;

	return halvings < 64 ? counter->bytes >> halvings : 0;
}

/* A network that sends steadily at r bytes a second is counted r before it, r / 2 of the second before
 * that, … : less than 2 r at any instant. So twice the share is what may not be exceeded. */
MILLRACE_INLINE __u64 most_bytes(void)
{
	__u64 percent = 2ull * threshold;

	if (multiply_high(rate / 100 + 1, percent))
		return ~0ull;
	return rate / 100 * percent + rate % 100 * percent / 100;
}

/* Adds a packet to a network's counter, which every packet of it does, the refused ones too. 1: the
 * network exceeds its share; 0: it does not; -1: no room for its counter. */
#define count(networks, network, epoch, bytes_more)                                            \
	({                                                                                     \
		struct counter *found = map_refresh(networks, network), fresh;                 \
		if (!found) {                                                                  \
			fresh = (struct counter){ 0, (epoch) };                                \
			found = map_put(networks, network, &fresh);                            \
		}                                                                              \
		if (found) {                                                                   \
			found->bytes = decayed(found, (epoch)) + (bytes_more);                 \
			if (found->epoch < (epoch))                                            \
				found->epoch = (epoch);                                        \
		}                                                                              \
		found ? found->bytes > most_bytes() : -1;                                      \
	})

ON_PACKET(p)
{
	__u64 epoch = p->time / HALF_LIFE;
	int in_large, in_middling, in_small;
	struct networks n;

	if (p->port == LAN)
		return FORWARD(WAN);
	switch (find_networks(p, &n)) {
	case 0:
		return FORWARD(LAN);
	case -1:
		return DROP_BECAUSE(bad_header);
	}
	in_large = count(&large, &n.large, epoch, packet_length(p));
	in_middling = count(&middling, &n.middling, epoch, packet_length(p));
	in_small = count(&small, &n.small, epoch, packet_length(p));
	if (in_large < 0 || in_middling < 0 || in_small < 0)
		return DROP_BECAUSE(table_full);
	return in_large || in_middling || in_small ? DROP_BECAUSE(over_share) : FORWARD(LAN);
}
