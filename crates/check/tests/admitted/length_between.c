#include <millrace/nf.h>
PORTS(LAN, WAN);
ON_PACKET(p)
{
	struct flow f;
	__be16 type;
	__u32 at = packet_network(p, &type);
	struct ipv4 *ip;
	struct ipv6 *ip6;

	if (!at) return DROP;
	if (type == htons(ETHERTYPE_IPV4)) {
		ip = ipv4_at(p, at);
		if (!ip || ip->ttl < 2) return DROP;
	} else if (type == htons(ETHERTYPE_IPV6)) {
		ip6 = ipv6_at(p, at);
		if (!ip6 || ip6->hop_limit < 2) return DROP;
	}
	if (!packet_flow(p, &f))
		return DROP;
	if (packet_length(p) > 1500) return DROP_BECAUSE(big);
	if (type == htons(ETHERTYPE_IPV4)) {
		ip = ipv4_at(p, at);
		if (!ip || ip->ttl < 2) return DROP;
		ipv4_decrement_ttl(ip);
	}
	return FORWARD(peer(p));
}
